// A stage for table cases: events in the notation of the scenarios, answers as one text.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "tests/scenarios/stage.hpp"

namespace elasticrun::scenarios {

class Scene {
 public:
  using Build = std::unique_ptr<Stage> (*)(Words&);

  Scene(Build build, std::string_view setting) {
    Words words(setting);
    stage_ = build(words);
    words.end();
  }

  // "3s 1 says ready call 1"; without a time the event comes at the time of the last one. Returns
  // the answers, separated by newlines.
  std::string tell(std::string_view event) {
    Words words(event);
    if (words.peek().ends_with('s') && words.at_number() && words.peek().size() < 8) {
      Words time = words;
      now_ = scene_begin + time.duration();
      words = time;
    }
    std::string text;
    for (const std::string& line : stage_->play(words, now_)) {
      if (line.starts_with("BUG")) throw std::runtime_error(std::string(event) + ": " + line);
      text += (text.empty() ? "" : "\n") + line;
    }
    words.end();
    return text;
  }
  // Several events, one per line; returns all answers.
  std::string play(std::string_view script) {
    std::string text;
    while (!script.empty()) {
      const auto end = std::min(script.find('\n'), script.size());
      std::string_view line = script.substr(0, end);
      script.remove_prefix(std::min(end + 1, script.size()));
      line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
      if (line.empty()) continue;
      const std::string said = tell(line);
      if (!said.empty()) text += said + "\n";
    }
    return text;
  }

 private:
  std::unique_ptr<Stage> stage_;
  Time now_ = scene_begin;
};

inline bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace elasticrun::scenarios
