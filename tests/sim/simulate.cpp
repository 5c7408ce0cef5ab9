// Runs the simulator over seeds; the first line of a failure is the command that replays it.
//
//   simulate 1 1000            seeds 1 to 1000: one line at the end, or one for each failing seed
//   simulate --story SEED      one seed, told: every fault, everything the controller says
//   simulate --rules 1 1000    which invariants broke, a line each (for planted mistakes)
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "simulate/cluster.hpp"

namespace {

using namespace elasticrun;
using namespace elasticrun::simulate;

int story(std::uint64_t seed) {
  const Scene scene = draw(seed);
  fmt::print("{}\n", describe(scene));
  Time begin{};
  const Outcome outcome = Cluster(scene, [&](Time now, const std::string& text) {
                            if (begin == Time{}) begin = now;
                            fmt::print("{:10.3f} ms  {}\n", milliseconds(now - begin), text);
                          }).run();
  fmt::print("{} events, {} faults, {} worlds, exit code {}: {}\n", outcome.events, outcome.faults,
             outcome.worlds, outcome.exit_code, outcome.last_words);
  if (outcome.broken_rule.empty()) return 0;
  fmt::print("BROKEN: {}\n", outcome.broken_text);
  return 1;
}

int seeds(std::uint64_t first, std::uint64_t last, bool rules_only, const char* self) {
  std::map<std::string, int> broken;
  std::map<int, int> ends;
  std::vector<std::uint64_t> events;
  std::uint64_t worlds = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const Outcome outcome = Cluster(draw(seed), nullptr).run();
    events.push_back(outcome.events);
    worlds += static_cast<std::uint64_t>(outcome.worlds);
    ++ends[outcome.exit_code];
    if (outcome.broken_rule.empty()) continue;
    ++broken[outcome.broken_rule];
    if (!rules_only) fmt::print("{} --story {}\n  BROKEN: {}\n", self, seed, outcome.broken_text);
  }
  if (rules_only)
    for (const auto& [rule, count] : broken) fmt::print("{}: {}\n", rule, count);
  std::ranges::sort(events);
  const auto long_ones = events.end() - std::ranges::lower_bound(events, 300U);
  std::string codes;
  for (const auto& [code, count] : ends) codes += fmt::format(" {} times {},", count, code);
  fmt::print(
      "{} seeds ({} of at least 300 events, median {}, most {}), {} worlds; "
      "ended with{} {} rules broken\n",
      events.size(), long_ones, events[events.size() / 2], events.back(), worlds, codes,
      broken.size());
  return broken.empty() ? 0 : 1;
}

int usage() {
  fmt::print(stderr, "usage: simulate [--rules] FIRST LAST | simulate --story SEED\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  const auto number = [](const std::string& text) {
    return static_cast<std::uint64_t>(std::strtoull(text.c_str(), nullptr, 10));
  };
  if (args.size() == 2 && args[0] == "--story") return story(number(args[1]));
  const bool rules = !args.empty() && args[0] == "--rules";
  if (args.size() != (rules ? 3U : 2U)) return usage();
  const auto first = number(args[args.size() - 2]), last = number(args[args.size() - 1]);
  return first > 0 && first <= last ? seeds(first, last, rules, argv[0]) : usage();
}
