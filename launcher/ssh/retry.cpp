// See retry.hpp.
#include "launcher/ssh/retry.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"

namespace elasticrun::launcher::ssh {

Duration deadline_of(Stage stage, const StageLimits& limits) {
  switch (stage) {
    case Stage::config:
    case Stage::lookup:
    case Stage::connect:
    case Stage::greeting:
    case Stage::host_key:
      return limits.connect;
    case Stage::login:
      return limits.login;
    case Stage::shell:
    case Stage::run:
      return limits.shell;
    case Stage::copy:
      return limits.copy;
  }
  return limits.connect;
}

std::vector<Attempts::Action> Attempts::step(const Event& event, Time now) {
  std::vector<Action> actions;
  std::visit([&](const auto& e) { on(e, now, actions); }, event);
  while (in_flight_ < limits_.in_flight && !queue_.empty()) {
    const HostId host = queue_.front();
    queue_.pop_front();
    Entry& entry = hosts_.at(host);
    entry.phase = Phase::trying;
    ++entry.attempts;
    ++in_flight_;
    actions.push_back(Attempt{host});
  }
  return actions;
}

Time Attempts::wake_at() const {
  Time at = never;
  for (const auto& [host, entry] : hosts_) at = std::min(at, entry.due);
  return at;
}

void Attempts::on(const Wanted& event, Time, std::vector<Action>&) {
  ER_CHECK(hosts_.try_emplace(event.host).second, "a host is wanted once at a time");
  queue_.push_back(event.host);
}

void Attempts::on(const Started& event, Time, std::vector<Action>&) { forget(event.host); }

void Attempts::on(const Failed& event, Time now, std::vector<Action>& actions) {
  const auto it = hosts_.find(event.host);
  if (it == hosts_.end()) return;
  Entry& entry = it->second;
  const int most = event.trouble.retry == Retry::briefly     ? limits_.brief_attempts
                   : event.trouble.retry == Retry::throttled ? limits_.throttled_attempts
                                                             : 1;
  if (entry.attempts >= most) {
    std::string reason = event.trouble.text;
    if (entry.attempts > 1) reason += fmt::format(" ({} attempts)", entry.attempts);
    forget(event.host);
    actions.push_back(GiveUp{event.host, std::move(reason)});
    return;
  }
  --in_flight_;
  entry.phase = Phase::pausing;
  entry.due = now + pause(entry.attempts);
}

void Attempts::on(const Unwanted& event, Time, std::vector<Action>&) { forget(event.host); }

void Attempts::on(const PauseOver&, Time now, std::vector<Action>&) {
  for (auto& [host, entry] : hosts_) {
    if (entry.due > now) continue;
    entry.phase = Phase::waiting;
    entry.due = never;
    queue_.push_back(host);
  }
}

void Attempts::forget(HostId host) {
  const auto it = hosts_.find(host);
  if (it == hosts_.end()) return;
  if (it->second.phase == Phase::trying) --in_flight_;
  if (it->second.phase == Phase::waiting) std::erase(queue_, host);
  hosts_.erase(it);
}

// A random time between half and one and a half times the nominal pause.
Duration Attempts::pause(int attempts) {
  const double doubled = seconds(limits_.first_pause) * static_cast<double>(1 << (attempts - 1));
  const double nominal = std::min(doubled, seconds(limits_.longest_pause));
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(nominal * (0.5 + rng_.uniform())));
}

}  // namespace elasticrun::launcher::ssh
