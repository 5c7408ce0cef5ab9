#include "job/roster.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "launcher/host_line.hpp"

namespace elasticrun::job {

void Roster::give(const std::vector<launcher::Host>& hosts) {
  given_ = hosts;
  for (const launcher::Host& host : hosts) met_[book_.meet(host)] = host;
}

bool Roster::is_given(const launcher::Host& host) const {
  return std::ranges::find(given_, launcher::key_of(host), launcher::key_of) != given_.end();
}

Result<HostId> Roster::number_of(const wire::Hello& hello) {
  launcher::Host host;
  host.name = hello.name;
  host.slots = hello.slots;
  if (hello.name.empty() || hello.name != launcher::shown(hello.name) ||
      hello.name.find_first_of(" \t") != std::string::npos)
    return Error{fmt::format("'{}' is no name for a host", launcher::shown(hello.name))};
  if (host.slots < 1 || host.slots > launcher::slots_per_host_max)
    return Error{fmt::format("a host has 1 to {} slots", launcher::slots_per_host_max)};
  if (is_given(host))
    return Error{fmt::format("{} is a host of this job already; choose another --name", host.name)};
  const HostId id = book_.meet(host);
  if (joined_.contains(id))
    return Error{fmt::format("{} has joined already; choose another --name", host.name)};
  expected_[id] = std::move(host);
  return id;
}

bool Roster::up(HostId host, const wire::Hello& hello) {
  meetings_[host] = {hello.address, hello.free_port};
  const auto expected = expected_.find(host);
  if (expected == expected_.end() || expected->second.name != hello.name) return false;
  met_[host] = joined_[host] = expected->second;
  return true;
}

launcher::Plan Roster::plan(int default_slots) {
  std::vector<launcher::Host> hosts = given_;
  for (const auto& [id, host] : joined_)
    if (!is_given(host)) hosts.push_back(host);
  return launcher::make_plan(hosts, default_slots, book_);
}

std::string Roster::name(HostId host) const {
  const auto found = met_.find(host);
  return found == met_.end() ? fmt::format("host {}", host.value) : found->second.name;
}

std::string Roster::type(HostId host) const {
  const auto found = met_.find(host);
  return found == met_.end() ? "" : found->second.type;
}

Roster::Meeting Roster::meeting_of(const std::vector<launcher::Slot>& world) const {
  const auto found = meetings_.find(world.front().host);
  Meeting meeting = found == meetings_.end() ? Meeting{} : found->second;
  const bool one_host = std::ranges::all_of(
      world, [&](const launcher::Slot& slot) { return slot.host == world.front().host; });
  const auto host = met_.find(world.front().host);
  if (host != met_.end() && !host->second.address.empty()) meeting.address = host->second.address;
  if (one_host || meeting.address.empty()) meeting.address = "127.0.0.1";
  return meeting;
}

}  // namespace elasticrun::job
