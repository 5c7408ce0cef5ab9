// See suspects.hpp.
#include "rendezvous/suspects.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace elasticrun::rendezvous {

void Suspects::away(HostId host, const std::string& reason, Time now) {
  hosts_.try_emplace(host, Suspect{.since = now, .reason = reason});
  const auto early = early_.extract(host);
  if (!early.empty() && now - early.mapped().at <= patience)
    accused(host, early.mapped().reason, now);
}

void Suspects::accused(HostId host, const std::string& reason, Time now) {
  const auto found = hosts_.find(host);
  if (found == hosts_.end()) {
    early_.insert_or_assign(host, Accusation{now, reason});
    return;
  }
  found->second.accused = true;
  found->second.reason += "; " + reason;
}

// A message that a host sent before it died may arrive some milliseconds after the accusation by
// its peers, so an accusation that young is kept.
void Suspects::heard(HostId host, Time now) {
  const auto early = early_.find(host);
  if (early != early_.end() && now - early->second.at > moment) early_.erase(early);
}

void Suspects::stood_still(Duration time) {
  for (auto& [host, suspect] : hosts_) suspect.since += time;
}

Time Suspects::due(const Suspect& suspect, std::size_t others) const {
  const bool known = suspect.accused && others > 0;
  return suspect.since + (known ? moment : patience) + patience_each * std::ssize(hosts_);
}

std::vector<Suspects::Lost> Suspects::check(std::size_t others, Time now) {
  std::vector<Lost> lost;
  for (const auto& [host, suspect] : hosts_) {
    if (now < due(suspect, others)) continue;
    lost.push_back({host, fmt::format("{}, and it did not come back within {}", suspect.reason,
                                      to_text(now - suspect.since))});
  }
  for (const Lost& one : lost) hosts_.erase(one.host);
  return lost;
}

Time Suspects::wake_at(std::size_t others) const {
  Time at = never;
  for (const auto& [host, suspect] : hosts_) at = std::min(at, due(suspect, others));
  return at;
}

}  // namespace elasticrun::rendezvous
