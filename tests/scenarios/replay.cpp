// Replays the scenarios of this folder: each event of a text file goes to the core that the file's
// folder names, and the core's answers are compared with the lines below the event.
//
// So a change of behaviour shows as a diff of texts that a person can judge. When it is intended:
//   scenario_replay --record FOLDER      (build target record_scenarios)
// writes the answers of today into the files; events and comments stay as they are.
//
// A file is an opening comment, a line with the setting, then events with their times, each
// followed by its answers after an arrow.
//   # Why this scenario is worth having.
//   setting minimum 1
//   0s up 1
//   0s 1 says ready call 1
//      -> ready 1
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>

#include "tests/scenarios/stage.hpp"

namespace elasticrun::scenarios {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view arrow = "   -> ";

using Build = std::unique_ptr<Stage> (*)(Words&);
constexpr std::pair<std::string_view, Build> kinds[] = {
    {"membership", membership_stage}, {"worker", worker_stage}, {"job", job_stage}};

Lines read(const fs::path& file) {
  std::ifstream in(file);
  Lines lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Returns the script with the answers of today. An answer that begins with BUG throws.
Lines replay(const Lines& script, Build build) {
  Lines out;
  std::unique_ptr<Stage> stage;
  for (const std::string& line : script) {
    if (line.starts_with(arrow)) continue;
    out.push_back(line);
    if (line.empty() || line.starts_with('#')) continue;
    Words words(line);
    if (!stage) {
      words.expect("setting");
      stage = build(words);
      words.end();
      continue;
    }
    const Time now = scene_begin + words.duration();
    for (const std::string& answer : stage->play(words, now)) {
      if (answer.starts_with("BUG")) words.fail(answer);
      out.push_back(std::string(arrow) + answer);
    }
    words.end();
  }
  if (!stage) throw std::runtime_error("it has no setting");
  return out;
}

// Where the two first differ, with the event before it; empty when they are the same.
std::string difference(const Lines& expected, const Lines& found) {
  const auto [e, f] = std::mismatch(expected.begin(), expected.end(), found.begin(), found.end());
  if (e == expected.end() && f == found.end()) return {};
  const auto event = std::find_if(std::reverse_iterator(e), expected.rend(),
                                  [](const std::string& l) { return !l.starts_with(arrow); });
  return fmt::format(":{}: after '{}'\n  expected {}\n  found    {}\n", e - expected.begin() + 1,
                     event == expected.rend() ? "the beginning" : *event,
                     e == expected.end() ? "the end" : *e, f == found.end() ? "the end" : *f);
}

// True when the scenario went as written, or was recorded.
bool run(const fs::path& file, Build build, bool record) {
  const Lines script = read(file);
  Lines found;
  try {
    found = replay(script, build);
  } catch (const std::exception& error) {
    fmt::print("{}: {}\n", file.string(), error.what());
    return false;
  }
  const std::string parts = difference(script, found);
  if (parts.empty()) return true;
  if (!record) {
    fmt::print("{}{}", file.string(), parts);
    return false;
  }
  std::ofstream out(file);
  for (const std::string& line : found) out << line << '\n';
  fmt::print("{}: recorded\n", file.string());
  return out.good();
}

int main_of(const fs::path& folder, bool record) {
  bool good = true;
  for (const auto& [kind, build] : kinds) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder / kind))
      if (entry.path().extension() == ".txt") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) good = run(file, build, record) && good;
    fmt::print("{}: {} scenarios\n", kind, files.size());
    good = good && !files.empty();
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace elasticrun::scenarios

int main(int count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + count);
  const bool record = !words.empty() && words.front() == "--record";
  if (words.size() != (record ? 2 : 1)) {
    fmt::print(stderr, "usage: scenario_replay [--record] FOLDER\n");
    return 2;
  }
  return elasticrun::scenarios::main_of(words.back(), record);
}
