// Starting the agent inside of something: numactl, a profiler, a container's exec. Pure text.
//
// The command is a person's shell words, and the agent's path is put behind them; a shell on the
// host reads them, as one that is typed there would.
#pragma once

#include <string>
#include <string_view>

namespace elasticrun::launcher::executors {

// Why that cannot be used; empty: it can. The words travel inside one word in single quotes that
// every login shell must read alike (ssh/bootstrap.hpp), hence the few characters that are refused.
std::string wrap_mistake(std::string_view wrap);

// How a wrap that has ended with 126 or 127, as shells do when there is nothing to run, is told.
std::string wrap_failure(std::string_view wrap, int exit_code);

// For sh on the agent's host: tells its watchdog to end everything at once. `pid` is the watchdog,
// or, wrapped, something that it descends from, as far as it is seen from there.
std::string end_watchdog_script(int pid, bool wrapped);

}  // namespace elasticrun::launcher::executors
