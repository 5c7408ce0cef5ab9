// Small things done with texts. Letters are those of ASCII: a locale changes nothing here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace elasticrun {

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
std::string lower(std::string_view text);

// The parts of `text` that have no blank in them, in order; they point into `text`.
std::vector<std::string_view> words(std::string_view text, std::string_view blanks = " \t\r");

// The last line that is not empty, without its end; empty when there is none.
std::string_view last_line(std::string_view text);

// Quotes `word` so that a shell reads it as one word.
std::string shell_quoted(std::string_view word);

// A number with its noun: "1 step", "2 steps".
std::string counted(std::int64_t count, std::string_view noun);

}  // namespace elasticrun
