// One entry of a host file: the grammar itself, without files, line numbers or duplicates.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "launcher/hosts/hosts.hpp"

namespace elasticrun::launcher::hosts {

// The hosts of one entry: none for a blank one or a comment, several for a range or a list. The
// error says what is wrong and what to write instead; the caller puts the place before it.
Result<std::vector<Host>> parse_host_line(std::string_view line);

// "n[01-03,7]" -> n01 n02 n03 n7, several brackets multiply. Zeros in front are kept.
Result<std::vector<std::string>> expand_ranges(std::string_view pattern);

// Where the first item of "a,n[1,2],b" ends: at a comma that is not inside brackets, or at the end.
std::size_t end_of_item(std::string_view list);

// What is wrong with this name of a host, or with this numeric IPv6 address; nothing: it is one.
std::optional<std::string> name_mistake(std::string_view name);
std::optional<std::string> ipv6_mistake(std::string_view text);

// Why this is no name of an account for ssh; none: it is one.
std::optional<std::string> user_mistake(std::string_view user);

// Text from a file for a message: control characters become '?', and it is cut when it is long.
std::string shown(std::string_view text);

}  // namespace elasticrun::launcher::hosts
