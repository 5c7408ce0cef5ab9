// Bytes as JSON text. JSON strings are Unicode, but a program's output, its arguments and the
// addresses of a data plane are arbitrary bytes. A string that is not valid UTF-8 therefore travels
// as base64, marked as such by the codec; all others stay readable in a trace.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace elasticrun::wire {

// Strict as RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view text);

// RFC 4648, section 4, with padding.
std::string to_base64(std::string_view bytes);
// nullopt when the text is not exactly what to_base64 would produce.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace elasticrun::wire
