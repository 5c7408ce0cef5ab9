// See node_states.hpp.
#include "launcher/srun/node_states.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

namespace elasticrun::launcher::srun {
namespace {

// Cuts the first word off.
std::string_view next_word(std::string_view& line) {
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(std::min(word.size() + 1, line.size()));
  return word;
}

// Without the mark that Slurm puts behind the word: '*' if the node does not answer, for example.
bool is_one_of(std::string_view state, std::initializer_list<std::string_view> words) {
  return std::ranges::count(words, state.substr(0, state.find_first_of("*~#!%$@^-+"))) > 0;
}

// Whether no further job will run there.
bool goes(std::string_view state) {
  return is_one_of(state, {"draining", "drained", "failing", "fail"});
}

// Whether the job can run there.
bool is_well(std::string_view state) {
  return is_one_of(state, {"allocated", "mixed", "idle", "completing"}) &&
         state.find('*') == state.npos;
}

}  // namespace

NodeNews node_news(std::string_view lines, const std::set<std::string>& going) {
  NodeNews news;
  std::set<std::string> nodes, leaving;
  while (!lines.empty()) {
    std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    const std::string node(next_word(line));
    const std::string_view state = next_word(line);
    if (!node.empty()) nodes.insert(node);
    const bool was_to_go = going.contains(node);
    if (was_to_go && is_well(state)) news.stay[node] = fmt::format("Slurm has it {}", state);
    if (!goes(state)) continue;
    leaving.insert(node);
    if (was_to_go) continue;
    const bool reason = !line.empty() && line != "none";
    news.go[node] =
        fmt::format("Slurm has it {}{}", state, reason ? fmt::format(" ({})", line) : "");
  }
  return leaving.size() == nodes.size() ? NodeNews() : news;
}

}  // namespace elasticrun::launcher::srun
