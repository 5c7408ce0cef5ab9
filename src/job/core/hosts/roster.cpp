// See roster.hpp.
#include "job/core/hosts/roster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "launcher/hosts/host_line.hpp"

namespace elasticrun::job::hosts {

void Roster::give(const std::vector<launcher::hosts::Host>& hosts) {
  for (const launcher::hosts::Host& host : given_.hosts)
    if (const HostId id = book_.meet(host); !joined_.contains(id)) given_.dropped.insert(id);
  given_.hosts = hosts;
  for (const launcher::hosts::Host& host : hosts) {
    const HostId id = book_.meet(host);
    meet(id, host);
    given_.dropped.erase(id);
  }
}

bool Roster::is_given(const launcher::hosts::Host& host) const {
  return std::ranges::find(given_.hosts, launcher::hosts::key_of(host), launcher::hosts::key_of) !=
         given_.hosts.end();
}

namespace {

// The texts of a Hello go into what workers and users read, so each must be a name or a number, and
// nothing that could mean more.
Result<void> check(const wire::Hello& hello) {
  const std::string& address = hello.address;
  const bool v6 = address.find(':') != std::string::npos;
  if (!address.empty())
    if (auto valid =
            v6 ? launcher::hosts::check_ipv6(address) : launcher::hosts::check_name(address);
        !valid)
      return valid;
  // "GPU-3f...", "MIG-GPU-3f.../1/0", or a number.
  constexpr auto in_gpu = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-/";
  if (hello.gpus.size() > launcher::hosts::slots_per_host_max)
    return Error{"it names too many GPUs"};
  for (const std::string& gpu : hello.gpus)
    if (gpu.find_first_not_of(in_gpu) != gpu.npos)
      return Error{fmt::format("'{}' is no name of a GPU", launcher::hosts::shown(gpu))};
  return {};
}

}  // namespace

Result<HostId> Roster::admit(const wire::Hello& hello, std::optional<HostId> started) {
  if (const auto valid = check(hello); !valid) return valid.error();
  if (!started) return number_for_newcomer(hello);
  return *started;
}

std::uint32_t Roster::runs(HostId host) const {
  const auto found = runs_.find(host);
  return found == runs_.end() ? 0 : found->second;
}

bool Roster::had_run(HostId host, std::uint32_t run) const { return run >= 1 && run <= runs(host); }

Result<HostId> Roster::number_for_newcomer(const wire::Hello& hello) {
  launcher::hosts::Host host;
  host.name = hello.name;
  host.slots = hello.slots;
  if (const auto valid = launcher::hosts::check_name(hello.name); !valid) return valid.error();
  if (host.slots < 1 || host.slots > launcher::hosts::slots_per_host_max)
    return Error{fmt::format("a host has 1 to {} slots", launcher::hosts::slots_per_host_max)};
  if (is_given(host))
    return Error{fmt::format("{} is a host of this job already; choose another --name", host.name)};
  const HostId id = book_.meet(host);
  if (joined_.contains(id))
    return Error{fmt::format("{} has joined already; choose another --name", host.name)};
  expected_[id] = std::move(host);
  return id;
}

Roster::News Roster::up(HostId host, const wire::Hello& hello) {
  meetings_[host] = {hello.address, hello.free_port};
  const auto expected = expected_.find(host);
  if (expected != expected_.end() && expected->second.name == hello.name) {
    heard(host, hello);
    meet(host, expected->second);
    joined_[host] = std::move(expected->second);
    expected_.erase(expected);
    left_out_.erase(host);  // it was given back earlier, and comes again
    given_.drained.erase(host);
    return given_.dropped.erase(host) > 0 ? News::slots : News::joined;
  }
  const auto known = met_.find(host);
  if (known == met_.end()) return News::none;
  const int before = slots_of(host, known->second);
  heard(host, hello);
  const int now = slots_of(host, known->second);
  const bool guessed_well = known->second.slots > 0 || std::exchange(guess_, now) == now;
  const bool others = lost_.contains(host) || before != now || !guessed_well;
  return others ? News::slots : News::none;
}

void Roster::heard(HostId host, const wire::Hello& hello) {
  gpus_[host] = hello.gpus;
  for (std::size_t slot = 0; slot < hello.gpus.size(); ++slot)
    if (hello.gpus[slot].empty()) lost_[host].insert(static_cast<std::int32_t>(slot));
}

Roster::News Roster::down(HostId host) {
  const auto out = left_out_.find(host);
  const bool was_leaving = out != left_out_.end() && out->second == Why::leaving;
  if (was_leaving) left_out_.erase(out);
  const bool some_lost = lost_.erase(host) > 0 || was_leaving;
  if (joined_.erase(host) > 0) return News::joined;
  return some_lost ? News::slots : News::none;
}

int Roster::slots_of(HostId id, const launcher::hosts::Host& host) const {
  if (!slots_are_gpus_) return launcher::hosts::slots_of(host, default_slots_);
  const auto heard = gpus_.find(id);
  if (heard == gpus_.end()) return launcher::hosts::slots_of(host, guess_);
  const auto count = static_cast<int>(heard->second.size());
  return launcher::hosts::slots_of(host, std::clamp(count, 1, launcher::hosts::slots_per_host_max));
}

bool Roster::guesses() const {
  return slots_are_gpus_ && std::ranges::any_of(met_, [&](const auto& one) {
           return one.second.slots == 0 && !gpus_.contains(one.first) && is_given(one.second);
         });
}

std::vector<std::string> Roster::gpus(HostId host) const {
  const auto heard = gpus_.find(host);
  const auto known = met_.find(host);
  if (heard == gpus_.end() || known == met_.end()) return {};
  std::vector<std::string> names = heard->second;
  const auto slots = static_cast<std::size_t>(slots_of(host, known->second));
  names.resize(std::min(names.size(), slots));
  for (std::size_t slot = 0; slot < names.size(); ++slot)
    if (is_lost(host, static_cast<std::int32_t>(slot))) names[slot].clear();
  return names;
}

bool Roster::lose(HostId host, std::int32_t slot) {
  if (slot < 0 || slot >= std::ssize(gpus(host))) return false;
  lost_[host].insert(slot);
  return true;
}

bool Roster::leaves(HostId host) {
  return met_.contains(host) && left_out_.emplace(host, Why::leaving).second;
}

bool Roster::is_lost(HostId host, std::int32_t slot) const {
  const auto found = lost_.find(host);
  return found != lost_.end() && found->second.contains(slot);
}

std::optional<HostId> Roster::given(const std::string& name) {
  const auto found = std::ranges::find(given_.hosts, name, &launcher::hosts::Host::name);
  if (found == given_.hosts.end()) return std::nullopt;
  return book_.meet(*found);
}

std::set<HostId> Roster::dropped() const {
  std::set<HostId> hosts = given_.dropped;
  hosts.insert(given_.drained.begin(), given_.drained.end());
  return hosts;
}

launcher::hosts::Plan Roster::plan() {
  std::vector<launcher::hosts::Host> hosts = given_.hosts;
  for (const auto& [id, host] : joined_)
    if (!is_given(host)) hosts.push_back(host);
  for (launcher::hosts::Host& host : hosts) host.slots = slots_of(book_.meet(host), host);
  launcher::hosts::Plan plan = launcher::hosts::make_plan(hosts, default_slots_, book_);
  const auto lost = [&](const launcher::hosts::Slot& slot) {
    return is_lost(slot.host, slot.slot) || left_out_.contains(slot.host) ||
           given_.drained.contains(slot.host);
  };
  if (std::erase_if(plan.slots, lost) > 0)
    plan.slots_by_host = launcher::hosts::count_by_host(plan.slots);
  std::erase_if(plan.spares, lost);
  return plan;
}

std::string Roster::name(HostId host) const {
  const auto found = met_.find(host);
  return found == met_.end() ? fmt::format("host {}", host.value) : found->second.name;
}

void Roster::meet(HostId id, const launcher::hosts::Host& host) {
  met_[id] = host;
  untold_.hosts.push_back({id, host.name, host.type});
}

HostsMet Roster::take_met() { return std::exchange(untold_, {}); }

void Roster::port_is_free(HostId host, int port) {
  if (const auto meeting = meetings_.find(host); meeting != meetings_.end() && port > 0)
    meeting->second.port = port;
}

Roster::Meeting Roster::meeting_on(HostId host, bool alone) const {
  const auto found = meetings_.find(host);
  Meeting meeting = found == meetings_.end() ? Meeting{} : found->second;
  const auto met = met_.find(host);
  if (met != met_.end() && !met->second.address.empty()) meeting.address = met->second.address;
  if (alone || meeting.address.empty()) meeting.address = "127.0.0.1";
  return meeting;
}

}  // namespace elasticrun::job::hosts
