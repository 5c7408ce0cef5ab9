// See python_source.hpp.
#include "launcher/machine/python_source.hpp"

#include <algorithm>
#include <string_view>

namespace elasticrun::launcher::machine {
namespace {

// python, python3, python3.11
bool is_interpreter(std::string_view program) {
  program.remove_prefix(program.rfind('/') + 1);  // npos + 1 is 0
  constexpr std::string_view name = "python";
  return program.starts_with(name) &&
         program.find_first_not_of("0123456789.", name.size()) == program.npos;
}

PythonSource module_source(std::size_t argument, std::string name) {
  std::ranges::replace(name, '.', '/');
  return {argument, true, {name + "/__main__.py", name + ".py"}};
}

}  // namespace

std::optional<PythonSource> python_source(const std::vector<std::string>& command) {
  if (command.empty()) return std::nullopt;
  if (command[0].ends_with(".py")) return PythonSource{0, false, {command[0]}};
  if (!is_interpreter(command[0])) return std::nullopt;
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string& word = command[i];
    if (word == "--" && ++i == command.size()) return std::nullopt;
    if (word == "-") return std::nullopt;
    if (word == "--" || !word.starts_with('-')) return PythonSource{i, false, {command[i]}};
    if (word.starts_with("--")) {
      i += word == "--check-hash-based-pycs";
      continue;
    }
    // The first letter that takes an argument, which is the rest of the word or the next word.
    const std::size_t at = word.find_first_of("cmWX", 1);
    if (at == word.npos) continue;
    const bool next = at + 1 == word.size();
    if (word[at] == 'c' || (next && ++i == command.size())) return std::nullopt;
    if (word[at] == 'm') return module_source(i, next ? command[i] : word.substr(at + 1));
  }
  return std::nullopt;
}

}  // namespace elasticrun::launcher::machine
