// See flags.hpp.
#include "cli/flags.hpp"

#include "base/text.hpp"

namespace elasticrun::cli {

std::string spelled(const Flag& flag) {
  return (flag.name.size() == 1 ? "-" : "--") + std::string(flag.name);
}

std::vector<std::string> spellings(const Flag& flag) {
  std::vector<std::string> all{spelled(flag)};
  for (const std::string_view one : words(flag.others))
    if (one != all.front()) all.emplace_back(one);
  return all;
}

std::string environment_name(const Flag& flag) {
  std::string name = "ELASTICRUN_" + std::string(flag.name);
  std::ranges::transform(name, name.begin(), [](char c) {
    if (c == '-') return '_';
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return name;
}

}  // namespace elasticrun::cli
