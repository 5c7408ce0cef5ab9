// See process_stat.hpp.
#include "launcher/agent/workers/process_stat.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <string>

#include "net/sockets.hpp"

namespace elasticrun::launcher::agent::workers {
namespace {

constexpr int levels_max = 1000;  // ancestors looked at; a shell in a shell is two
constexpr int walks_max = 3;

// Fields are counted from 1, as in proc(5). The second one is the program's name in parentheses,
// which may contain any character, so the others are counted from the last parenthesis.
constexpr int first_field = 3;

template <class Number>
bool read_field(std::string_view fields, int number, Number& value) {
  for (int i = first_field; i < number; ++i) {
    const std::size_t blank = fields.find(' ');
    if (blank == fields.npos) return false;
    fields.remove_prefix(blank + 1);
  }
  return std::from_chars(fields.data(), fields.data() + fields.size(), value).ec == std::errc{};
}

enum class Walk { yes, no, again };

Walk walk(pid_t pid, pid_t above, const std::function<std::optional<ProcessStat>(pid_t)>& stat_of) {
  std::optional<ProcessStat> child = stat_of(pid);
  for (int level = 0; child && level < levels_max; ++level) {
    if (child->parent <= 1 && child->parent != above) return Walk::no;
    const std::optional<ProcessStat> parent = stat_of(child->parent);
    if (!parent || parent->started > child->started) return Walk::again;
    if (child->parent == above) return Walk::yes;
    child = parent;
  }
  return Walk::no;
}

}  // namespace

std::optional<ProcessStat> parse_process_stat(std::string_view text) {
  const std::size_t name_end = text.rfind(") ");
  if (name_end == text.npos) return std::nullopt;
  const std::string_view fields = text.substr(name_end + 2);
  ProcessStat stat;
  if (!read_field(fields, 4, stat.parent) || !read_field(fields, 22, stat.started))
    return std::nullopt;
  if (!read_field(fields, 52, stat.exit_status)) stat.exit_status = 0;
  return stat;
}

// Of a process that is stopped, the field holds the signal that has stopped it.
std::optional<ProcessEnd> end_in(const ProcessStat& stat) {
  const int status = stat.exit_status;
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0) return ProcessEnd{.code = WEXITSTATUS(status)};
  if (!WIFSIGNALED(status)) return std::nullopt;
  for (const int stops : {SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU})
    if (WTERMSIG(status) == stops) return std::nullopt;
  return ProcessEnd{.signal = WTERMSIG(status)};
}

std::optional<ProcessStat> process_stat(pid_t pid) {
  const net::Fd fd(::open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC));
  char text[1024];  // the file has some 50 numbers
  const ssize_t n = fd.get() < 0 ? -1 : ::read(fd.get(), text, sizeof text);
  if (n <= 0) return std::nullopt;
  return parse_process_stat({text, static_cast<std::size_t>(n)});
}

bool is_below(pid_t pid, pid_t above,
              const std::function<std::optional<ProcessStat>(pid_t)>& stat_of) {
  for (int i = 0; i < walks_max; ++i)
    if (const Walk found = walk(pid, above, stat_of); found != Walk::again)
      return found == Walk::yes;
  return false;
}

}  // namespace elasticrun::launcher::agent::workers
