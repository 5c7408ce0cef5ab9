// See text.hpp.
#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace elasticrun {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = lower(c);
  return result;
}

std::vector<std::string_view> words(std::string_view text, std::string_view blanks) {
  std::vector<std::string_view> found;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
    if (text.empty()) return found;
    found.push_back(text.substr(0, text.find_first_of(blanks)));
    text.remove_prefix(found.back().size());
  }
}

std::string_view last_line(std::string_view text) {
  text = text.substr(0, text.find_last_not_of("\r\n \t") + 1);
  return text.substr(text.find_last_of('\n') + 1);
}

std::string counted(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string shell_quoted(std::string_view word) {
  std::string result = "'";
  for (const char c : word)
    if (c == '\'')
      result += "'\\''";
    else
      result += c;
  return result + "'";
}

}  // namespace elasticrun
