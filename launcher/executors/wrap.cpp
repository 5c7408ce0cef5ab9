// See wrap.hpp.
#include "launcher/executors/wrap.hpp"

#include <fmt/format.h>

namespace elasticrun::launcher::executors {
namespace {

// SIGCONT first, because a stopped watchdog would not react. From the leaves up, so that the
// children of each process are read before it can have ended.
constexpr std::string_view search_watchdog =
    "k() {{ for p in $(cat /proc/$1/task/*/children 2>/dev/null); do k $p; done; "
    "if [ \"$(cat /proc/$1/comm 2>/dev/null)\" = er-watchdog ]; then kill -CONT $1; kill -{1} $1; "
    "fi; }}; k {0}";

}  // namespace

Result<void> check_wrap(std::string_view wrap) {
  if (wrap.find_first_not_of(" \t") == wrap.npos)
    return Error{"the command is empty; give one, as in 'numactl -N 0'"};
  if (wrap.find_first_of("'\\!\n\r") != wrap.npos)
    return Error{fmt::format(
        "'{}' has a quote ('), backslash, exclamation mark or newline in it; put the command "
        "into a script, which ends with exec ... \"$@\", and give that",
        wrap.substr(0, wrap.find_first_of("\n\r")))};
  return {};
}

std::string wrap_failure(std::string_view wrap, int exit_code) {
  return fmt::format("--wrap: '{}' {}; is it installed there, and does it see the agent's file?",
                     wrap,
                     exit_code == 127 ? "was not found, or did not find the agent (exit code 127)"
                                      : "cannot be run (exit code 126)");
}

std::string end_watchdog_script(int pid, bool wrapped) {
  if (!wrapped) return fmt::format("kill -CONT {0}; kill -{1} {0}", pid, order_to_end);
  return fmt::format(fmt::runtime(search_watchdog), pid, order_to_end);
}

}  // namespace elasticrun::launcher::executors
