// --wrap: starts the agent inside another command, such as numactl, a profiler or a container's
// exec. Pure text.
//
// The command is shell text from the user, and the agent's path is appended to it; a shell on the
// host reads it as if it had been typed there.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace elasticrun::launcher::executors {

// Whether the command can be used. It is sent inside one single-quoted word that every login shell
// must read alike (ssh/bootstrap.hpp), so a few characters are refused.
Result<void> check_wrap(std::string_view wrap);

// The message text for a wrap command that ended with exit code 126 or 127, with which a shell
// reports that a command cannot be run or was not found.
std::string wrap_failure(std::string_view wrap, int exit_code);

// The launcher's order to a watchdog to end everything at once: a real-time signal, since batch
// systems and users send the others to all processes.
inline constexpr int order_to_end = 40;

// A script for sh on the agent's host that makes the agent's watchdog end everything at once. `pid`
// is the watchdog; if `wrapped`, it may be an ancestor of the watchdog, which the script then looks
// for among the descendants that are visible there.
std::string end_watchdog_script(int pid, bool wrapped);

}  // namespace elasticrun::launcher::executors
