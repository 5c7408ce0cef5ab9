// Reads one line of a scenario word by word. Words that do not fit throw, with the line: a misspelt
// scenario must fail and not be skipped.
#pragma once

#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"

namespace elasticrun::fakes {

class Words {
 public:
  explicit Words(std::string_view line) : line_(line), rest_(line) { skip_spaces(); }

  [[noreturn]] void fail(const std::string& why) const {
    throw std::runtime_error("cannot read '" + std::string(line_) + "': " + why);
  }
  bool empty() const { return rest_.empty(); }
  std::string_view peek() const { return rest_.substr(0, rest_.find_first_of(" :")); }
  std::string word() {
    const std::string_view found = peek();
    if (found.empty()) fail("a word is missing");
    return skip(found.size());
  }
  bool accept(std::string_view wanted) {
    if (peek() != wanted) return false;
    skip(wanted.size());
    return true;
  }
  void expect(std::string_view wanted) {
    if (!accept(wanted)) fail("'" + std::string(wanted) + "' is missing");
  }
  bool at_number() const {
    return !rest_.empty() && (rest_[0] == '-' || (rest_[0] >= '0' && rest_[0] <= '9'));
  }
  std::int64_t number() {
    const std::string found = word();
    try {
      std::size_t used = 0;
      const std::int64_t value = std::stoll(found, &used);
      if (used == found.size()) return value;
    } catch (const std::logic_error&) {
    }
    fail("'" + found + "' is no number");
  }
  WorkerId worker() { return WorkerId(static_cast<std::uint32_t>(number())); }
  HostId host() { return HostId(static_cast<std::uint32_t>(number())); }
  Generation generation() {
    if (!rest_.starts_with('g')) fail("a generation is missing");
    rest_.remove_prefix(1);
    return Generation(static_cast<std::uint64_t>(number()));
  }
  StepId step() {
    if (accept("none")) return no_state;
    expect("step");
    return StepId(number());
  }
  std::vector<WorkerId> workers() {
    std::vector<WorkerId> found;
    while (at_number()) found.push_back(worker());
    return found;
  }
  Duration duration() {
    const auto parsed = parse_duration(word());
    if (!parsed) fail(parsed.error().text);
    return *parsed;
  }
  // Reads ": some text" to the end of the line; empty when there is none.
  std::string reason() {
    if (!rest_.starts_with(':')) return {};
    rest_.remove_prefix(1);
    skip_spaces();
    return std::string(std::exchange(rest_, {}));
  }
  void end() const {
    if (!empty()) fail("'" + std::string(rest_) + "' is too much");
  }

 private:
  std::string skip(std::size_t count) {
    std::string found(rest_.substr(0, count));
    rest_.remove_prefix(count);
    skip_spaces();
    return found;
  }
  void skip_spaces() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
  }

  std::string_view line_;
  std::string_view rest_;
};

}  // namespace elasticrun::fakes
