// See node_states.hpp.
#include "launcher/srun/node_states.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace elasticrun::launcher::srun {
namespace {

// Cuts the first word off.
std::string_view next_word(std::string_view& line) {
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(std::min(word.size() + 1, line.size()));
  return word;
}

// Whether no further job will run there. Marks behind the word say that it does not answer, or is
// reserved, say.
bool goes(std::string_view state) {
  for (const std::string_view word : {"draining", "drained", "failing", "fail"})
    if (state.substr(0, state.find_first_of("*~#!%$@^-+")) == word) return true;
  return false;
}

}  // namespace

std::map<std::string, std::string> nodes_that_go(std::string_view lines) {
  std::map<std::string, std::string> going;
  std::set<std::string, std::less<>> nodes;
  while (!lines.empty()) {
    std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    const std::string_view node = next_word(line);
    const std::string_view state = next_word(line);
    if (!node.empty()) nodes.emplace(node);
    if (!goes(state)) continue;
    const bool reason = !line.empty() && line != "none";
    going[std::string(node)] =
        fmt::format("Slurm has it {}{}", state, reason ? fmt::format(" ({})", line) : "");
  }
  if (going.size() == nodes.size()) going.clear();
  return going;
}

}  // namespace elasticrun::launcher::srun
