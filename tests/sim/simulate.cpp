// Runs the simulator over seeds; the first line of a failure is the command that replays it.
//
//   simulate 1 1000             seeds 1 to 1000: figures at the end, before them the failing seeds
//   simulate --rules 1 1000     which rules broke, a line each
//   simulate --until RULE 1 N   up to the first seed that breaks this rule (for planted mistakes)
//   simulate --story SEED       one seed: every fault, every message, all output of the controller
//   simulate --shrink SEED      the smallest scene that breaks the rule which this seed breaks
//   simulate --replay FILE...   scenes that were kept; --story takes a file as well
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "simulate/faults/cluster.hpp"
#include "simulate/faults/scene_text.hpp"
#include "simulate/faults/shrink.hpp"

namespace {

using namespace elasticrun;
using namespace elasticrun::simulate::faults;

std::optional<std::uint64_t> number(const std::string& text) {
  char* end = nullptr;
  const auto value = static_cast<std::uint64_t>(std::strtoull(text.c_str(), &end, 10));
  return *end == '\0' && value > 0 ? std::optional(value) : std::nullopt;
}

// The scene of a seed, or of a file.
std::optional<Scene> scene_of(const std::string& name) {
  if (const auto seed = number(name)) return draw(*seed);
  const std::ifstream file(name);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    fmt::print(stderr, "simulate: {}: cannot be read\n", name);
    return std::nullopt;
  }
  const auto scene = parse_scene(text.str());
  if (!scene) fmt::print(stderr, "simulate: {}: {}\n", name, scene.error().text);
  return scene ? std::optional(*scene) : std::nullopt;
}

int story(const std::string& name) {
  const auto scene = scene_of(name);
  if (!scene) return 2;
  fmt::print("{}", scene_text(*scene));
  Time begin{};
  const Outcome outcome = Cluster(*scene, [&](Time now, const std::string& text) {
                            if (begin == Time{}) begin = now;
                            fmt::print("{:10.3f} ms  {}\n", milliseconds(now - begin), text);
                          }).run();
  fmt::print("{} events, {} faults, {} worlds, exit code {}: {}\n", outcome.events, outcome.faults,
             outcome.worlds, outcome.exit_code, outcome.last_words);
  if (outcome.broken_rule.empty()) return 0;
  fmt::print("BROKEN: {}\n", outcome.broken_text);
  return 1;
}

int shrunk(const std::string& name) {
  const auto scene = scene_of(name);
  if (!scene) return 2;
  const Outcome outcome = Cluster(*scene, nullptr).run();
  if (outcome.broken_rule.empty()) {
    fmt::print(stderr, "simulate: {} breaks no rule\n", name);
    return 2;
  }
  const Scene small = shrink(*scene, outcome.broken_rule);
  fmt::print("# BROKEN: {}\n{}", Cluster(small, nullptr).run().broken_text, scene_text(small));
  return 1;
}

int replay(const std::vector<std::string>& files) {
  int status = 0;
  for (const std::string& file : files) {
    const auto scene = scene_of(file);
    if (!scene) return 2;
    const Outcome outcome = Cluster(*scene, nullptr).run();
    const bool well = outcome.broken_rule.empty();
    fmt::print("{}: {}\n", file, well ? "well" : "BROKEN: " + outcome.broken_text);
    if (!well) status = 1;
  }
  return status;
}

struct Figures {
  std::map<std::string, int> broken;
  std::map<int, int> ends;
  std::vector<std::uint64_t> events;
  std::uint64_t worlds = 0, faults = 0;
};

void print(Figures figures, double seconds) {
  const auto seeds = figures.events.size();
  std::ranges::sort(figures.events);
  const auto long_ones = figures.events.end() - std::ranges::lower_bound(figures.events, 300U);
  std::string codes;
  for (const auto& [code, count] : figures.ends)
    codes += fmt::format(" {} in {:.1f} %,", code, 100.0 * count / static_cast<double>(seeds));
  fmt::print(
      "{} seeds, {:.0f} a second ({} of at least 300 events, median {}, most {}), {} faults, {} "
      "worlds; ended with{} {} rules broken\n",
      seeds, static_cast<double>(seeds) / seconds, long_ones, figures.events[seeds / 2],
      figures.events.back(), figures.faults, figures.worlds, codes, figures.broken.size());
}

enum class Telling { seeds, rules, until };

int seeds(std::uint64_t first, std::uint64_t last, Telling telling, const std::string& rule) {
  Figures figures;
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const Outcome outcome = Cluster(draw(seed), nullptr).run();
    figures.events.push_back(outcome.events);
    figures.worlds += static_cast<std::uint64_t>(outcome.worlds);
    figures.faults += static_cast<std::uint64_t>(outcome.faults);
    ++figures.ends[outcome.exit_code];
    if (outcome.broken_rule.empty()) continue;
    ++figures.broken[outcome.broken_rule];
    if (telling == Telling::until && outcome.broken_rule == rule) break;
    if (telling == Telling::seeds)
      fmt::print("simulate --story {}\n  BROKEN: {}\n", seed, outcome.broken_text);
  }
  if (telling != Telling::seeds)
    for (const auto& [name, count] : figures.broken) fmt::print("{}: {}\n", name, count);
  const bool broken = !figures.broken.empty();
  print(std::move(figures), elasticrun::seconds(std::chrono::steady_clock::now() - begin));
  return broken ? 1 : 0;
}

int usage() {
  fmt::print(stderr,
             "usage: simulate [--rules | --until RULE] FIRST LAST | simulate --story SEED|FILE |\n"
             "       simulate --shrink SEED|FILE | simulate --replay FILE...\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  const std::string option = !args.empty() && args[0].starts_with("--") ? args[0] : "";
  if (!option.empty()) args.erase(args.begin());
  if (option == "--story" && args.size() == 1) return story(args[0]);
  if (option == "--shrink" && args.size() == 1) return shrunk(args[0]);
  if (option == "--replay" && !args.empty()) return replay(args);
  auto telling = Telling::seeds;
  std::string rule;
  if (option == "--rules") telling = Telling::rules;
  if (option == "--until" && !args.empty()) {
    telling = Telling::until;
    rule = args[0];
    args.erase(args.begin());
  } else if (!option.empty() && option != "--rules") {
    return usage();
  }
  if (args.size() != 2) return usage();
  const auto first = number(args[0]), last = number(args[1]);
  return first && last && *first <= *last ? seeds(*first, *last, telling, rule) : usage();
}
