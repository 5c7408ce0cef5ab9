// Signals that are meant for the job and reach its workers as well: batch systems, service managers
// and container runtimes signal all processes. A worker that ended of such a signal would take the
// state with it before elasticrun, which gets the signal too, has saved it.
#pragma once

namespace elasticrun::worker::api {

// From now on TERM and INT end this process only when its shim, a parent, or the process itself
// sends them, and USR1 and USR2 are ignored. A handler of the program stays, and so does a signal
// that it ignores. Without a shim above nothing changes.
void ignore_stray_signals();

}  // namespace elasticrun::worker::api
