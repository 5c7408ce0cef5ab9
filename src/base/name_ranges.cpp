// See name_ranges.hpp.
#include "base/name_ranges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace elasticrun {
namespace {

constexpr std::size_t digits_max = 9;  // so that the number fits an int

// What the names of one item have in common: the text before the number, and the number of digits
// if it has leading zeros. It is 0 without leading zeros, so that 9 and 10 are neighbours.
using Family = std::pair<std::string, std::size_t>;

std::pair<Family, std::string> split(const std::string& name) {
  std::size_t digits = 0;
  while (digits < std::min(name.size(), digits_max) && name[name.size() - digits - 1] >= '0' &&
         name[name.size() - digits - 1] <= '9')
    ++digits;
  const std::string number = name.substr(name.size() - digits);
  const bool padded = number.size() > 1 && number.front() == '0';
  return {{name.substr(0, name.size() - digits), padded ? digits : 0}, number};
}

std::string ranges(const std::set<int>& numbers, std::size_t width) {
  std::string text;
  for (auto it = numbers.begin(); it != numbers.end();) {
    const int first = *it;
    int last = first;
    for (++it; it != numbers.end() && *it == last + 1; ++it) ++last;
    text += fmt::format("{}{:0{}}", text.empty() ? "" : ",", first, width);
    if (last > first) text += fmt::format("-{:0{}}", last, width);
  }
  return text;
}

}  // namespace

std::string fold_names(const std::vector<std::string>& names, std::size_t items) {
  std::vector<Family> order;
  std::map<Family, std::set<int>> numbers;
  for (const std::string& name : names) {
    auto [family, number] = split(name);
    // A number as wide as the padded ones before it ("10" after "09") belongs to their family.
    const Family padded{family.first, number.size()};
    if (family.second == 0 && numbers.contains(padded)) family = padded;
    if (!numbers.contains(family)) order.push_back(family);
    auto& of_family = numbers[family];
    if (!number.empty()) of_family.insert(std::stoi(number));
  }
  std::string text;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == items) return text + ", ...";
    const auto& of_family = numbers.at(order[i]);
    std::string folded = ranges(of_family, order[i].second);
    if (of_family.size() > 1) folded = "[" + folded + "]";
    text += (i == 0 ? "" : ", ") + order[i].first + folded;
  }
  return text;
}

}  // namespace elasticrun
