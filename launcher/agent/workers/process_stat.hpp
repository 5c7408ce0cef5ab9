// What /proc/PID/stat tells about a process, and who is above whom.
//
// A process number is given to another process as soon as its owner is gone, so a number alone
// proves nothing. A walk along parents is believed only while each parent is older than its child:
// a number that was given anew belongs to a younger process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace elasticrun::launcher::agent::workers {

struct ProcessStat {
  pid_t parent = -1;
  std::uint64_t started = 0;  // clock ticks since the boot; ties are possible
};

// The text of the file (proc(5)). Pure.
std::optional<ProcessStat> parse_process_stat(std::string_view text);

// None: there is no such process.
std::optional<ProcessStat> process_stat(pid_t pid);

// Whether the process was started by `above`, or by one that it has started, and so on. A process
// whose parent dies meanwhile gets another one; then the walk begins anew, a few times. Pure.
bool is_below(pid_t pid, pid_t above,
              const std::function<std::optional<ProcessStat>(pid_t)>& stat_of);

}  // namespace elasticrun::launcher::agent::workers
