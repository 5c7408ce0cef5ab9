// What /proc/PID/stat says about a process, and which process descends from which.
//
// A pid can be given to another process as soon as its owner is gone, so a pid alone proves
// nothing. A walk along parents is believed only while each parent is older than its child: a pid
// that was given again belongs to a younger process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace elasticrun::launcher::agent::workers {

struct ProcessStat {
  pid_t parent = -1;
  std::uint64_t started = 0;  // clock ticks since boot; ties are possible
  // As of wait(2), from the moment at which the process begins to die; 0 before, and where the
  // kernel does not tell.
  int exit_status = 0;
};

// Parses the text of the file (proc(5)). Pure.
std::optional<ProcessStat> parse_process_stat(std::string_view text);

// Nothing if there is no such process.
std::optional<ProcessStat> process_stat(pid_t pid);

struct ProcessEnd {
  std::int32_t code = 0;
  std::int32_t signal = 0;  // 0: none
};
// How a process ends that dies. Nothing: it does not, as far as is known, or it ends with code 0.
// Pure.
std::optional<ProcessEnd> end_in(const ProcessStat& stat);

// Whether the process was started by `above`, directly or through processes in between. A process
// whose parent dies meanwhile gets another parent; then the walk starts over, a few times. Pure.
bool is_below(pid_t pid, pid_t above,
              const std::function<std::optional<ProcessStat>(pid_t)>& stat_of);

}  // namespace elasticrun::launcher::agent::workers
