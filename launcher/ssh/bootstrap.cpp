// See bootstrap.hpp.
#include "launcher/ssh/bootstrap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/numbers.hpp"
#include "launcher/executors/wrap.hpp"

namespace elasticrun::launcher::ssh {
namespace {

// Lines are joined before they travel, because csh accepts no newline in quotes. Sets d to the
// directory of place number c; empty: there is no such place on this host.
constexpr std::string_view directory_script = R"(
case $c in
1) d=${XDG_CACHE_HOME:-$HOME/.cache}/elasticrun;;
2) d=${XDG_RUNTIME_DIR:+$XDG_RUNTIME_DIR/elasticrun};;
3) d=${TMPDIR:+$TMPDIR/elasticrun-$(id -u)};;
*) d=/tmp/elasticrun-$(id -u);;
esac;
f=$d/agent-$h; t=$f.$m;
)";

// Where /proc/sys/kernel/arch exists (Linux 6.1) it saves a process, because `read` is built into
// the shell. -O: in a directory that all users can write to, another user may have put something
// under our name. -x is false on a file system mounted noexec, whatever the file's mode is.
constexpr std::string_view find_script_begin = R"(
if read s 2>/dev/null </proc/sys/kernel/arch; then s="Linux $s"; else s=$(uname -sm); fi;
if [ "$s" = "$y" ]; then :; else echo; echo "$m foreign 0 0 $s"; exit 0; fi;
w=;
while [ $c -le 4 ]; do
)";
constexpr std::string_view find_script_middle = R"(
x=;
if [ $c -ge 3 ] && [ -e "$d" ]; then
if [ -d "$d" ] && [ -O "$d" ]; then if [ -L "$d" ]; then x="a link"; fi;
else x="of another user"; fi; fi;
if [ -z "$d" ]; then c=$((c+1)); continue; fi;
if [ -z "$x" ]; then
if [ -f "$f" ] && [ -x "$f" ] && [ $(wc -c <"$f") -eq $z ]; then
echo; echo "$m found $c $$"; exec )";
constexpr std::string_view find_script_end = R"("$f" --ready "$m"; fi;
if (umask 077; mkdir -p "$d" && : >"$t" && chmod 700 "$t") 2>/dev/null; then
if [ -x "$t" ]; then rm -f "$t"; echo; echo "$m copy $c 0"; exit 0; fi;
rm -f "$t"; x="mounted noexec";
else x="cannot be written to"; fi; fi;
w="$w$d ($x) "; c=$((c+1));
done;
echo; echo "$m nowhere 0 0 $w"
)";

// A file that was not used for a month belongs to an old version; agents touch the programs that
// they use.
constexpr std::string_view copy_script = R"(
umask 077;
if cat >"$t" && [ $(wc -c <"$t") -eq $z ] && chmod 700 "$t" && mv -f "$t" "$f"; then
find "$d" -type f -name "agent-*" -mtime +30 -atime +30 -exec rm -f {} + 2>/dev/null;
find "$d" -type d -name "bundle-*" -mtime +30 -prune -exec rm -rf {} + 2>/dev/null;
echo; echo "$m copied $c 0";
else rm -f "$t"; echo; echo "$m failed $c 0 $d"; fi
)";

std::string command(const Bootstrap& bootstrap, int place, std::string_view script) {
  std::string text = fmt::format("exec sh -c 'm={}; h={}; y=\"{}\"; z={}; c={};{}'", bootstrap.mark,
                                 bootstrap.hash, bootstrap.system, bootstrap.size, place, script);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string_view next_word(std::string_view& line) {
  const std::size_t blank = line.find(' ');
  const std::string_view word = line.substr(0, blank);
  line.remove_prefix(blank == std::string_view::npos ? line.size() : blank + 1);
  return word;
}

std::optional<Answer> parse(std::string_view line) {
  static constexpr std::array<std::pair<std::string_view, Answer::What>, 9> kinds = {
      {{"found", Answer::What::found},
       {"ready", Answer::What::ready},
       {"damaged", Answer::What::damaged},
       {"copy", Answer::What::copy},
       {"foreign", Answer::What::foreign},
       {"nowhere", Answer::What::nowhere},
       {"copied", Answer::What::copied},
       {"failed", Answer::What::failed},
       {"stream", Answer::What::stream}}};
  const std::string_view word = next_word(line);
  const auto kind = std::find_if(kinds.begin(), kinds.end(),
                                 [&](const auto& known) { return known.first == word; });
  const auto place = whole_number(next_word(line));
  const auto pid = whole_number(next_word(line));
  if (kind == kinds.end() || !place || !pid) return std::nullopt;
  while (line.ends_with(' ')) line.remove_suffix(1);
  return Answer{kind->second, static_cast<int>(*place), static_cast<int>(*pid), std::string(line)};
}

}  // namespace

std::string start_agent_command(const Bootstrap& bootstrap) {
  return fmt::format("exec ~/.cache/elasticrun/agent-{} --ready {}", bootstrap.hash,
                     bootstrap.mark);
}

std::string find_agent_command(const Bootstrap& bootstrap, int first) {
  return command(bootstrap, first,
                 fmt::format("{}{}{}{} {}", find_script_begin, directory_script, find_script_middle,
                             bootstrap.wrap, find_script_end));
}

std::string copy_agent_command(const Bootstrap& bootstrap, int place) {
  return command(bootstrap, place, fmt::format("{}{}", directory_script, copy_script));
}

std::string end_agent_command(const Bootstrap& bootstrap, int pid) {
  return fmt::format("exec sh -c '{}'",
                     executors::end_watchdog_script(pid, !bootstrap.wrap.empty()));
}

std::optional<Answer> find_answer(std::string_view printed, const std::string& mark,
                                  std::string_view& rest) {
  while (!printed.empty()) {
    const std::size_t end = printed.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    std::string_view line = printed.substr(0, end);
    printed.remove_prefix(end + 1);
    if (next_word(line) != mark) continue;
    rest = printed;
    return parse(line);
  }
  return std::nullopt;
}

}  // namespace elasticrun::launcher::ssh
