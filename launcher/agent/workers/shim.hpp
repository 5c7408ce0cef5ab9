// The shim: a small process between the agent and one worker, which owns everything that the worker
// starts.
//
// The worker's processes cannot get out from under the shim (it is their subreaper), so "kill the
// tree of worker 3" is exact even if eight workers of one host have all left daemons behind.
// Without shims the agent would find those among its own children and could not tell which worker
// they belong to. The shim also is the only process that reaps the worker, so a signal can never
// hit a process that got the pid of a dead one. It ends its tree when the agent's end of the
// channel closes, so a killed agent leaves nothing behind.
//
// Written with fork and exec and not with Boost.Process, because it is a fork that does not exec,
// and because the worker's side needs exactly what Boost.Process leaves to its user (descriptors,
// group, signal mask and dispositions, the directory, the search along the worker's own PATH).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "net/sockets.hpp"
#include "wire/agent/messages.hpp"

namespace elasticrun::launcher::agent::workers {

// A shim's reports, one packet each, in this order: started or failed; after started, exited.
struct ShimReport {
  enum Kind : std::int32_t { started, failed, exited };
  std::int32_t kind = failed;
  std::int32_t value = 0;   // started: pid; failed: 126, 127 or 121; exited: exit code
  std::int32_t signal = 0;  // exited: the signal that ended the worker, or 0
  char text[500] = {};      // failed: why, zero-terminated
};

// Orders to a shim are single bytes: the number of a signal for the worker's group, or this one.
inline constexpr unsigned char kill_everything = 255;

// The worker's descriptor for lines about its progress (ELASTICRUN_PROGRESS_FD).
inline constexpr int progress_descriptor = 4;

// What the worker left behind is killed at once; only a process stuck in the kernel takes longer
// than this.
inline constexpr auto shim_cleaning_time = std::chrono::seconds(1);

struct Kept {
  pid_t shim = -1;
  net::Fd channel;  // a packet socket: reports up, orders down; its end is the shim's end
  net::Fd out;      // the worker's standard output, non-blocking, as err is
  net::Fd err;
  net::Fd progress;  // what the worker writes to the descriptor progress_descriptor
};

// Starts a shim, which starts the program: the file `program`, or, if that is empty, what a search
// in PATH finds. `host` is this host's name, for error messages.
Result<Kept> start_shim(const wire::agent::StartWorker& order, const std::string& host,
                        const std::string& program);

}  // namespace elasticrun::launcher::agent::workers
