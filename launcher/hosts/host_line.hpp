// The grammar of one host file entry. It knows nothing of files, line numbers or duplicates.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "launcher/hosts/hosts.hpp"

namespace elasticrun::launcher::hosts {

// The hosts of one entry: none for a blank line or a comment, several for a range or a list. The
// error says what is wrong and what to write instead; the caller prepends the file and line.
Result<std::vector<Host>> parse_host_line(std::string_view line);

// Whether it is a line of Grid Engine, which has one for each queue that gives a host's slots.
bool names_a_queue(std::string_view line);

// Expands "n[01-03,7]" to n01 n02 n03 n7. Several brackets give all combinations. Leading zeros are
// kept.
Result<std::vector<std::string>> expand_ranges(std::string_view pattern);

// The offset at which the first item of a list such as "a,n[1,2],b" ends: the first comma outside
// brackets, or the end of the text.
std::size_t end_of_item(std::string_view list);

// Whether the text is a host name, or a numeric IPv6 address.
Result<void> check_name(std::string_view name);
Result<void> check_ipv6(std::string_view text);

// Whether ssh can take this as a user name.
Result<void> check_user(std::string_view user);

// Text from a file, made fit for a message (base/line.hpp); long text is truncated.
std::string shown(std::string_view text);

}  // namespace elasticrun::launcher::hosts
