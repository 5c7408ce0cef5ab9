// See hosts.hpp.
#include "job/core/hosts/hosts.hpp"

#include <fmt/format.h>

#include <utility>

namespace elasticrun::job::hosts {

void Hosts::met(HostId host, const std::string& name, const std::string& type, bool stays) {
  Row& row = rows_[host];
  row.name = name;
  row.type = type;
  row.stays = stays;
}

bool Hosts::stays(HostId host) const {
  const auto row = rows_.find(host);
  return row != rows_.end() && row->second.stays;
}

std::string Hosts::name(HostId host) const {
  const auto row = rows_.find(host);
  const bool known = row != rows_.end() && !row->second.name.empty();
  return known ? row->second.name : fmt::format("host {}", host.value);
}

std::string Hosts::type(HostId host) const {
  const auto row = rows_.find(host);
  return row == rows_.end() ? "" : row->second.type;
}

HostState Hosts::state(HostId host) const {
  const auto row = rows_.find(host);
  return row == rows_.end() ? HostState::absent : row->second.state;
}

bool Hosts::live(HostId host) const {
  const HostState now = state(host);
  return now == HostState::asked || now == HostState::up || now == HostState::retried;
}

std::vector<HostId> Hosts::live() const {
  std::vector<HostId> hosts;
  for (const auto& [host, row] : rows_)
    if (live(host)) hosts.push_back(host);
  return hosts;
}

std::vector<HostId> Hosts::in(HostState state) const {
  std::vector<HostId> hosts;
  for (const auto& [host, row] : rows_)
    if (row.state == state) hosts.push_back(host);
  return hosts;
}

bool Hosts::none_live() const {
  return count(HostState::asked) + count(HostState::up) + count(HostState::retried) == 0;
}

void Hosts::turn(HostId host, HostTurn turn) {
  Row& row = rows_[host];
  --counts_[static_cast<std::size_t>(row.state)];
  row.state = next_in(host_transitions, row.state, turn);
  ++counts_[static_cast<std::size_t>(row.state)];
}

bool Hosts::ask(HostId host) {
  if (live(host)) return false;
  turn(host, HostTurn::asked);
  return true;
}

void Hosts::came(HostId host, Time leased_until) {
  turn(host, HostTurn::came);
  rows_[host].leased_until = leased_until;
  rows_[host].given_back = false;
}

void Hosts::went(HostId host) {
  turn(host, HostTurn::went);
  forget(host);
}

void Hosts::freed(HostId host) {
  turn(host, HostTurn::freed);
  forget(host);
}

void Hosts::forget(HostId host) {
  rows_[host].leased_until = {};
  rows_[host].leaving = false;
  rows_[host].given_back = false;
}

bool Hosts::leaving(HostId host) const {
  const auto row = rows_.find(host);
  return row != rows_.end() && row->second.leaving;
}

bool Hosts::given_back(HostId host) const {
  const auto row = rows_.find(host);
  return row != rows_.end() && row->second.given_back;
}

void Hosts::drop(const std::map<HostId, std::size_t>& hosts) {
  auto before = std::exchange(dropped_, hosts);
  for (auto& [host, workers] : dropped_)
    if (const auto known = before.find(host); known != before.end()) workers = known->second;
}

void Hosts::prolong(HostId host, Time leased_until) {
  const auto row = rows_.find(host);
  if (row != rows_.end()) row->second.leased_until = leased_until;
}

Time Hosts::leased_until(HostId host) const {
  const auto row = rows_.find(host);
  return row == rows_.end() ? Time{} : row->second.leased_until;
}

}  // namespace elasticrun::job::hosts
