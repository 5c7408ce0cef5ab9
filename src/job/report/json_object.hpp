// Writes JSON, member by member.
//
// Boost.JSON reads JSON for us, but it writes 426.6 as 4.266E2, and many of the programs that read
// events and questions are shell scripts.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace elasticrun::job::report {

class JsonObject {
 public:
  // A number that is written with so many decimals, instead of six digits.
  struct Fixed {
    double value;
    int decimals;
  };

  // A value is a number, a text (bytes that are not UTF-8 become U+FFFD, because strict readers
  // accept nothing else), true or false, an object, a list of values, or null: an empty optional,
  // and a number that is not finite.
  template <class T>
  JsonObject& add(std::string_view name, const T& value) {
    if (!members_.empty()) members_ += ',';
    put(name);
    members_ += ':';
    put(value);
    return *this;
  }

  // One object without a newline.
  std::string text() const { return '{' + members_ + '}'; }

 private:
  void put(double value);
  void put(Fixed value);
  void put(std::int64_t value);
  void put(std::string_view text);
  void put(const std::string& text) { put(std::string_view(text)); }
  void put(const JsonObject& object) { members_ += object.text(); }
  void put(std::same_as<bool> auto value) { members_ += value ? "true" : "false"; }
  void put(std::same_as<int> auto value) { put(std::int64_t{value}); }
  template <class T>
  void put(const std::optional<T>& value) {
    if (value)
      put(*value);
    else
      members_ += "null";
  }
  template <class T>
  void put(const std::vector<T>& values) {
    members_ += '[';
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) members_ += ',';
      put(values[i]);
    }
    members_ += ']';
  }

  std::string members_;
};

}  // namespace elasticrun::job::report
