// See fleet.hpp.
#include "simulate/what_if/fleet.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include "job/core/hosts/prices.hpp"

namespace elasticrun::simulate::what_if {

Fleet::Fleet(const std::vector<launcher::hosts::Host>& hosts, double price) : price_(price) {
  for (const launcher::hosts::Host& host : hosts) {
    const int slots = std::max(host.slots, 1);
    hosts_.push_back({.slots = slots, .price = host.price > 0 ? host.price / slots : price});
  }
  tell_slots();
}

std::vector<autoscaler::Offer> Fleet::offers(const std::vector<int>& sizes) const {
  std::vector<double> prices;
  for (const job::SlotId slot : slots_.all()) prices.push_back(hosts_[slot.host.value].price);
  return job::hosts::offers(sizes, slots_.all(), prices, price_);
}

void Fleet::tell_slots() {
  std::vector<job::SlotId> slots;
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    for (int slot = 0; hosts_[i].listed && slot < hosts_[i].slots; ++slot)
      slots.push_back({HostId(static_cast<HostId::rep>(i)), slot});
  slots_.set(std::move(slots));
}

void Fleet::list(int host, bool listed) {
  hosts_[static_cast<std::size_t>(host)].listed = listed;
  tell_slots();
}

void Fleet::count() {
  costs_ = {};
  for (const auto& [id, worker] : workers_.rows()) {
    ++costs_.workers;
    costs_.per_hour += hosts_[worker.slot.host.value].price;
  }
}

int Fleet::lose(int host) {
  std::set<WorkerId> lost;
  for (const auto& [id, worker] : workers_.rows())
    if (static_cast<int>(worker.slot.host.value) == host) lost.insert(id);
  for (const WorkerId id : lost) workers_.erase(id);
  count();
  return static_cast<int>(std::erase_if(members_, [&](WorkerId id) { return lost.contains(id); }));
}

bool Fleet::has_workers(int host) const {
  return std::ranges::any_of(workers_.rows(), [&](const auto& entry) {
    return static_cast<int>(entry.second.slot.host.value) == host;
  });
}

double Fleet::speed(WorkerId worker) const {
  return hosts_[workers_.rows().at(worker).slot.host.value].speed;
}

std::vector<WorkerId> Fleet::start(int size, Time now) {
  std::vector<WorkerId> started;
  for (const job::SlotId slot : job::workers::wanted_slots(slots_, workers_, size, now, members_))
    if (!workers_.in(slot)) started.push_back(workers_.order(slot, never));
  count();
  return started;
}

void Fleet::ready(WorkerId worker, Time now) { workers_.ready(worker, now); }

void Fleet::dismiss(int size, Time now) {
  const auto wanted = job::workers::wanted_slots(slots_, workers_, size, now, members_);
  const std::set<job::SlotId> slots(wanted.begin(), wanted.end());
  const std::set<WorkerId> members(members_.begin(), members_.end());
  std::vector<WorkerId> gone;
  for (const auto& [id, worker] : workers_.rows())
    if (!members.contains(id) && !slots.contains(worker.slot)) gone.push_back(id);
  for (const WorkerId id : gone) workers_.erase(id);
  count();
}

std::optional<std::vector<WorkerId>> Fleet::proposal(int size, Time now) const {
  std::set<WorkerId> next;
  for (const job::SlotId slot : job::workers::wanted_slots(slots_, workers_, size, now, members_)) {
    const auto id = workers_.in(slot);
    if (!id || !workers_.find(*id)->was_ready()) return {};
    next.insert(*id);
  }
  if (next.empty() || next == std::set<WorkerId>(members_.begin(), members_.end())) return {};
  std::vector<WorkerId> members;
  std::ranges::copy_if(members_, std::back_inserter(members),
                       [&](WorkerId id) { return next.erase(id) > 0; });
  members.insert(members.end(), next.begin(), next.end());
  return members;
}

bool Fleet::starting() const {
  return std::ranges::any_of(workers_.rows(), [](const auto& w) { return !w.second.was_ready(); });
}

}  // namespace elasticrun::simulate::what_if
