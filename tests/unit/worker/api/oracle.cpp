// See oracle.hpp.
#include "oracle.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <utility>

namespace elasticrun::engine_test {

void check_lineage(const std::vector<std::vector<std::string>>& lines, std::int64_t samples,
                   std::int64_t epochs) {
  std::map<std::int64_t, std::uint64_t> counts;  // step -> the generation that counts
  std::map<std::pair<std::uint64_t, std::int64_t>, std::vector<std::uint64_t>> computed;
  for (const auto& worker : lines)
    for (const std::string& line : worker) {
      std::istringstream in(line);
      std::string kind;
      std::uint64_t generation = 0, sample = 0;
      std::int64_t step = 0;
      in >> kind >> generation >> step;
      if (kind == "applied") counts[step] = std::max(counts[step], generation);
      if (kind == "computed")
        while (in >> sample) computed[{generation, step}].push_back(sample);
    }
  REQUIRE(!counts.empty());
  CHECK(counts.begin()->first == 0);
  CHECK(counts.rbegin()->first + 1 == static_cast<std::int64_t>(counts.size()));
  std::vector<std::uint64_t> epoch;
  std::int64_t whole_epochs = 0;
  for (const auto& [step, generation] : counts) {
    const auto& used = computed[{generation, step}];
    epoch.insert(epoch.end(), used.begin(), used.end());
    if (static_cast<std::int64_t>(epoch.size()) < samples) continue;
    INFO("epoch ", whole_epochs, " ends with step ", step);
    CHECK(static_cast<std::int64_t>(epoch.size()) == samples);
    const std::set<std::uint64_t> different(epoch.begin(), epoch.end());
    CHECK(static_cast<std::int64_t>(different.size()) == samples);
    CHECK(*different.rbegin() == static_cast<std::uint64_t>(samples - 1));
    epoch.clear();
    ++whole_epochs;
  }
  CHECK(epoch.empty());
  CHECK(whole_epochs == epochs);
}

std::vector<double> final_figures(const std::vector<std::string>& lines, int call) {
  const std::string begin = "final " + std::to_string(call) + " ";
  for (const std::string& line : lines) {
    if (!line.starts_with(begin)) continue;
    std::istringstream in(line.substr(begin.size()));
    std::vector<double> figures;
    std::string text;
    in >> text;  // skip the rank
    while (in >> text) figures.push_back(std::strtod(text.c_str(), nullptr));
    return figures;
  }
  return {};
}

void check_close(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(!expected.empty());
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO("figure ", i, ": ", found[i], " and not ", expected[i]);
    CHECK(std::abs(found[i] - expected[i]) <= 1e-12 * std::max(1.0, std::abs(expected[i])));
  }
}

}  // namespace elasticrun::engine_test
