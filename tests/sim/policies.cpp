// Plays random cases to every policy; the first line of a failure is the command that replays it.
//
//   policies 1 1000            seeds 1 to 1000: one line at the end, and two for each failing seed
//   policies --story SEED      one seed: what happens to the hosts, what is decided, and why
//   policies --rules 1 1000    which rules broke, a line each (for planted mistakes)
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "policy_cases.hpp"

namespace elasticrun {

// Replaces the function of base, which ends the process: here a failed check breaks a rule, which
// is reported with its seed like any other, and the next seed is tried.
void check_failed(const char* expression, const char* file, int line, std::string_view detail) {
  throw sim::Broken{"no internal error",
                    fmt::format("{} ({}:{}) {}", expression, file, line, detail)};
}

}  // namespace elasticrun

namespace {

using namespace elasticrun::sim;

// Reports crashes and cases that never end from a signal handler, which may only call write.
constexpr unsigned longest_s = 60;
std::array<char, 64> obituary{};

void write_obituary(int signal) {
  const auto length = std::char_traits<char>::length(obituary.data());
  (void)!::write(STDOUT_FILENO, obituary.data(), length);
  ::_exit(128 + signal);
}

void watch(std::uint64_t seed) {
  const auto end = fmt::format_to_n(obituary.data(), obituary.size() - 1,
                                    "seed {} was killed, or took too long\n", seed);
  *end.out = '\0';
  ::alarm(longest_s);
}

// Three of four cases are a controller's.
Broken play(std::uint64_t seed, const Tell& tell) {
  watch(seed);
  try {
    seed % 4 == 0 ? play_simulation(seed, tell) : play_controller(seed, tell);
  } catch (const Broken& broken) {
    return broken;
  } catch (const std::exception& error) {
    return {"no exception", error.what()};
  }
  return {};
}

int story(std::uint64_t seed) {
  const Broken broken = play(seed, [](const std::string& line) {
    fmt::print("{}\n", line);
    std::fflush(stdout);  // it may be the last one
  });
  if (broken.rule.empty()) return 0;
  fmt::print("BROKEN: {}: {}\n", broken.rule, broken.text);
  return 1;
}

int seeds(std::uint64_t first, std::uint64_t last, bool rules_only, const char* self) {
  const auto begin = std::chrono::steady_clock::now();
  std::map<std::string, int> rules;
  int failed = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const Broken broken = play(seed, nullptr);
    if (broken.rule.empty()) continue;
    ++rules[broken.rule];
    constexpr int most_told = 20;
    if (!rules_only && ++failed <= most_told)
      fmt::print("{} --story {}\n  BROKEN: {}: {}\n", self, seed, broken.rule, broken.text);
  }
  if (rules_only)
    for (const auto& [rule, count] : rules) fmt::print("{}: {}\n", rule, count);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const auto cases = last - first + 1;
  fmt::print("{} cases, {:.0f} in a second; {} rules broken\n", cases,
             static_cast<double>(cases) / took.count(), rules.size());
  return rules.empty() ? 0 : 1;
}

int usage() {
  fmt::print(stderr, "usage: policies [--rules] FIRST LAST | policies --story SEED\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  for (const int signal : {SIGALRM, SIGSEGV, SIGFPE, SIGABRT}) std::signal(signal, write_obituary);
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
