// Makes one line of text that others have written: workers, hosts, files and programs may put
// anything into it. A newline would begin a line in our name, and a terminal obeys control
// characters.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace elasticrun {

// Bytes of the UTF-8 character with which `text` begins; 0: it begins with none (RFC 3629: no
// overlong forms, no surrogates, nothing above U+10FFFF).
std::size_t character_bytes(std::string_view text);

// The beginning of `text`: at most `most` bytes, not cut inside a character.
std::string_view beginning(std::string_view text, std::size_t most);

// Newlines and tabs become blanks. '?' replaces other control characters (also C1), characters that
// end a line or turn its direction in Unicode, and bytes that are no UTF-8.
std::string as_line(std::string_view text);
// Likewise, but of at most `most` bytes of `text`; if it is longer, "..." replaces the rest.
std::string as_line(std::string_view text, std::size_t most);

// A whole line of ours, without blanks at its end. A line longer than own_line_max loses its
// middle, because our own words are at its ends.
inline constexpr std::size_t own_line_max = 4096;
std::string as_own_line(std::string_view text);

}  // namespace elasticrun
