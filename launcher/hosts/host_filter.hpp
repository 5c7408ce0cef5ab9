// The subset of the hosts that --include and --exclude select.
//
// The filter is stored apart from the hosts and applied again whenever the hosts are read again: an
// excluded host stays out when the user edits another line of the file, and a host that is added
// later is matched against the same names. The hosts keep their order, and so their ranks.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "launcher/hosts/hosts.hpp"

namespace elasticrun::launcher::hosts {

struct HostFilter {
  // Only these fields of a Host are used: the name; the port, where two hosts share a name; and in
  // `include` the slots, which are the most to use on that host (0: all).
  std::vector<Host> include;  // hosts to use; empty: all hosts
  std::vector<Host> exclude;  // hosts to leave out of the included ones
};

// Parse a list such as "n[01-16],b:2". `where` begins every error. For a list in DeepSpeed's
// notation the error says how to write it here.
Result<std::vector<Host>> parse_include(std::string_view list, std::string_view where);
Result<std::vector<Host>> parse_exclude(std::string_view list, std::string_view where);

// The first entry of `list` that matches none of `hosts`; null when every entry matches one.
const Host* first_unknown(const std::vector<Host>& list, const std::vector<Host>& hosts);

// The hosts that pass the filter; may be empty.
std::vector<Host> chosen(std::vector<Host> hosts, const HostFilter& filter);

}  // namespace elasticrun::launcher::hosts
