// Parses the lists of --include and --exclude, which use the grammar of a host list, and matches
// them with the hosts by name.
#include "launcher/hosts/host_filter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "base/text.hpp"
#include "launcher/hosts/host_line.hpp"

namespace elasticrun::launcher::hosts {
namespace {

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

// One host of DeepSpeed's notation. "a@b:0,2" means all of a, and slots 0 and 2 of b.
struct DeepSpeedHost {
  std::string_view name;
  int slots = 0;
};

// The hosts of a list in DeepSpeed's notation; empty when the list is not in that notation. A list
// without an '@' is taken for DeepSpeed's when it lists slot numbers: "b:1,3", or slot 0.
std::vector<DeepSpeedHost> read_deepspeed(std::string_view list) {
  std::vector<DeepSpeedHost> hosts;
  bool certain = list.find('@') != list.npos;
  while (true) {
    const auto end = list.find('@');
    const std::string_view host = list.substr(0, end);
    const auto colon = host.find(':');
    DeepSpeedHost one{host.substr(0, colon), 0};
    std::string_view slots = colon == host.npos ? "" : host.substr(colon + 1);
    while (!slots.empty()) {
      const auto comma = slots.find(',');
      if (!all_digits(slots.substr(0, comma))) return {};
      certain = certain || comma != slots.npos || slots == "0";
      ++one.slots;
      slots.remove_prefix(comma == slots.npos ? slots.size() : comma + 1);
    }
    hosts.push_back(one);
    if (end == list.npos) break;
    list.remove_prefix(end + 1);
  }
  return certain ? hosts : std::vector<DeepSpeedHost>{};
}

enum class Slots { counted, none };

std::string in_our_words(const std::vector<DeepSpeedHost>& hosts, Slots slots) {
  std::string text;
  for (const DeepSpeedHost& host : hosts) {
    text += fmt::format("{}{}", text.empty() ? "" : ",", shown(host.name));
    if (host.slots > 0 && slots == Slots::counted) text += fmt::format(":{}", host.slots);
  }
  return text;
}

bool has_more_than_name_and_slots(const Host& host) {
  return !host.user.empty() || !host.identity.empty() || !host.address.empty() ||
         !host.type.empty() || !host.rack.empty() || host.price > 0 || host.spare;
}

Result<std::vector<Host>> parse_names(std::string_view list, std::string_view where, Slots slots) {
  if (const auto hosts = read_deepspeed(list); !hosts.empty())
    return Error{fmt::format(
        "{}: '{}' is not understood; hosts are separated by commas{}; write {}", where, shown(list),
        slots == Slots::counted ? ", and their slots are counted" : " and left out whole",
        in_our_words(hosts, slots))};
  auto hosts = parse_host_list(list, where);
  if (!hosts) return hosts;
  for (const Host& host : *hosts)
    if (has_more_than_name_and_slots(host))
      return Error{fmt::format("{}: {}: give only names here, and the rest with the hosts", where,
                               host.name)};
  return hosts;
}

// The entries of a list by name, or by name and port where a port is given.
std::map<std::string, const Host*> by_name(const std::vector<Host>& list) {
  std::map<std::string, const Host*> found;
  for (const Host& host : list) found.emplace(lower(key_of(host)), &host);
  return found;
}

const Host* find(const std::map<std::string, const Host*>& list, const Host& host) {
  auto found = list.find(lower(key_of(host)));
  if (found == list.end()) found = list.find(lower(host.name));
  return found == list.end() ? nullptr : found->second;
}

}  // namespace

Result<std::vector<Host>> parse_include(std::string_view list, std::string_view where) {
  return parse_names(list, where, Slots::counted);
}

Result<std::vector<Host>> parse_exclude(std::string_view list, std::string_view where) {
  auto hosts = parse_names(list, where, Slots::none);
  if (!hosts) return hosts;
  for (const Host& host : *hosts)
    if (host.slots > 0)
      return Error{fmt::format("{}: {}:{}: hosts are left out whole; write {}", where, host.name,
                               host.slots, host.name)};
  return hosts;
}

const Host* first_unknown(const std::vector<Host>& list, const std::vector<Host>& hosts) {
  std::map<std::string, bool> there;
  for (const Host& host : hosts) there[lower(host.name)] = there[lower(key_of(host))] = true;
  for (const Host& host : list)
    if (!there.contains(lower(key_of(host)))) return &host;
  return nullptr;
}

std::vector<Host> chosen(std::vector<Host> hosts, const HostFilter& filter) {
  const auto include = by_name(filter.include);
  const auto exclude = by_name(filter.exclude);
  std::vector<Host> left;
  for (Host& host : hosts) {
    const Host* const wanted = find(include, host);
    if ((!include.empty() && !wanted) || find(exclude, host)) continue;
    if (wanted) host.slots_max = wanted->slots;
    left.push_back(std::move(host));
  }
  return left;
}

}  // namespace elasticrun::launcher::hosts
