// See unused_hosts.hpp.
#include "job/core/hosts/unused_hosts.hpp"

#include <algorithm>

namespace elasticrun::job::hosts {
namespace {

constexpr Duration pause_after_refusal = std::chrono::minutes(10);

}  // namespace

void UnusedHosts::look(const std::vector<HostId>& hosts, const std::set<HostId>& used, Time now,
                       const std::set<HostId>& free) {
  std::map<HostId, Time> since;
  for (const HostId host : hosts) {
    if (used.contains(host) || given_.contains(host)) continue;
    const auto before = since_.find(host);
    since[host] = before == since_.end() ? now : before->second;
  }
  for (const HostId host : free)
    if (!given_.contains(host)) since[host] = now - patience_;
  since_ = std::move(since);
}

Time UnusedHosts::due(HostId host, Time since) const {
  const auto refused = not_before_.find(host);
  const Time soonest = refused == not_before_.end() ? Time{} : refused->second;
  return std::max(since + patience_, soonest);
}

Time UnusedHosts::wake_at() const {
  Time at = never;
  for (const auto& [host, since] : since_) at = std::min(at, due(host, since));
  return at;
}

std::vector<HostId> UnusedHosts::take(Time now) {
  std::vector<HostId> taken;
  if (now < wake_at()) return taken;
  for (const auto& [host, since] : since_)
    if (now >= due(host, since - patience_ / 2)) taken.push_back(host);
  for (const HostId host : taken) {
    since_.erase(host);
    given_.insert(host);
  }
  return taken;
}

void UnusedHosts::refused(HostId host, Time now) {
  if (given_.erase(host) > 0) not_before_[host] = now + pause_after_refusal;
}

}  // namespace elasticrun::job::hosts
