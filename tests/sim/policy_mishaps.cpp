// The mishaps of a case: of its hosts, its workers and its host file.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "policy_stage.hpp"

namespace elasticrun::sim {

std::string names(const std::vector<WorkerId>& workers) {
  std::string text;
  for (const WorkerId worker : workers) text += fmt::format(" {}", worker.value);
  return text.empty() ? "none" : text.substr(1);
}

void Stage::mishap() {
  switch (rng_.below(9)) {
    case 0:
      return new_host();
    case 1:
      return edit(any_host());
    case 2:
      return give_notice(any_host());
    case 3:
      return host_dies(any_host());
    case 4: {
      Host& host = any_host();
      host.speed = host.speed < 1 ? 1 : 0.05 + 0.9 * rng_.uniform();
      return say("host {} has {:.2f} of its speed", host.id.value, host.speed);
    }
    case 5:
      return worker_dies();
    case 6:
      return program_speaks();
    case 7: {
      Host& host = any_host();
      host.listed = true;
      host.dies_at.reset();
      say("host {} ({}) is listed", host.id.value, host.name);
      return slots_changed();
    }
    default:
      now_ += std::chrono::minutes(rng_.below(90));
      say("nobody reports for a while");
  }
}

void Stage::new_host() {
  Host host{.id = HostId(static_cast<HostId::rep>(hosts_.size()))};
  host.name = std::string(1, static_cast<char>('a' + rng_.below(20)));
  host.type = rng_.chance(0.5) ? "" : rng_.chance(0.5) ? "fast" : "slow";
  host.slots = 1 + static_cast<int>(rng_.below(rng_.chance(0.1) ? 8 : 3));
  host.price = rng_.chance(0.5) ? 0 : 10 * rng_.uniform();
  hosts_.push_back(host);
  say("host {} ({}) comes: {} slots, price {:.2f}, type '{}'", host.id.value, host.name, host.slots,
      host.price, host.type);
  slots_changed();
}

void Stage::edit(Host& host) {
  host.slots = 1 + static_cast<int>(rng_.below(4));
  host.price = rng_.chance(0.3) ? 0 : 10 * rng_.uniform();
  if (rng_.chance(0.3)) std::swap(host, hosts_[rng_.below(hosts_.size())]);
  say("the host file is edited: host {} has {} slots, price {:.2f}", host.id.value, host.slots,
      host.price);
  slots_changed();
}

void Stage::give_notice(Host& host) {
  if (!host.listed) return;
  host.listed = false;
  host.dies_at = now_ + std::chrono::seconds(rng_.below(60));
  say("host {} ({}) is taken away in {}", host.id.value, host.name, to_text(*host.dies_at - now_));
  slots_changed();
}

void Stage::end_notices() {
  for (Host& host : hosts_)
    if (host.dies_at && *host.dies_at <= now_) {
      host.dies_at.reset();
      host_dies(host);
    }
}

void Stage::host_dies(Host& host) {
  std::vector<WorkerId> lost;
  for (const auto& [id, worker] : workers_.rows())
    if (worker.slot.host == host.id) lost.push_back(id);
  say("host {} ({}) dies with workers {}", host.id.value, host.name, names(lost));
  for (const job::SlotId slot : slots_.all())
    if (slot.host == host.id) slots_.host_failed(slot, now_);
  if (host.listed && rng_.chance(0.5)) {
    host.listed = false;
    say("host {} is listed no more", host.id.value);
    slots_changed();
  }
  lose(lost);
}

void Stage::worker_dies() {
  if (workers_.rows().empty()) return;
  auto at = workers_.rows().begin();
  std::advance(at, static_cast<std::ptrdiff_t>(rng_.below(workers_.rows().size())));
  say("worker {} dies", at->first.value);
  slots_.failed(at->second.slot, now_);
  lose({at->first});
}

void Stage::lose(const std::vector<WorkerId>& lost) {
  for (const WorkerId id : lost) workers_.erase(id);
  std::vector<WorkerId> rest;
  for (const WorkerId member : members_)
    if (std::ranges::count(lost, member) == 0) rest.push_back(member);
  if (rest.size() == members_.size()) return;
  lost_ = rest.empty();
  if (lost_) return say("the last member is lost, and the state with it");
  settle(false);
  form(std::move(rest));
}

// The program reports its batch again with each worker that is ready.
void Stage::program_speaks() {
  autoscaler::WorkerSample odd;  // for numbers that make no sense
  garble(odd, rng_);
  autoscaler::BatchRule rule = setting_.options.batch;
  if (rule.batch == 0) rule.batch = odd.steps;
  if (rule.base_batch == 0) rule.base_batch = odd.samples;
  say("the program has a batch of {}, tuned for {}", rule.batch, rule.base_batch);
  scaler_.batch_rule_changed(rule);
}

}  // namespace elasticrun::sim
