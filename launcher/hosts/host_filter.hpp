// Part of the hosts, as --include and --exclude choose it.
//
// The choice is kept apart from the hosts and applied again whenever they are read again: a host
// that was left out stays out when somebody edits another line, and one that comes later is chosen
// by the same names. Order, and so ranks, stay those of the hosts.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "launcher/hosts/hosts.hpp"

namespace elasticrun::launcher::hosts {

struct HostFilter {
  // Of each the name; the port where two hosts share a name; in `include` the most slots to take
  // of it, 0: all.
  std::vector<Host> include;  // empty: all hosts
  std::vector<Host> exclude;  // of those that are included
};

// "n[01-16],b:2"; `where` begins every error. What DeepSpeed would write is told in our words.
Result<std::vector<Host>> parse_include(std::string_view list, std::string_view where);
Result<std::vector<Host>> parse_exclude(std::string_view list, std::string_view where);

// The first of a list that is none of the hosts; null when all are.
const Host* first_unknown(const std::vector<Host>& list, const std::vector<Host>& hosts);

// What is left of the hosts, perhaps none.
std::vector<Host> chosen(std::vector<Host> hosts, const HostFilter& filter);

}  // namespace elasticrun::launcher::hosts
