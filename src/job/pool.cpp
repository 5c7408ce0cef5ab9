#include "job/pool.hpp"

#include <algorithm>

namespace elasticrun::job {

void Pool::set_slots(std::vector<SlotId> slots) { slots_ = std::move(slots); }

WorkerId Pool::start(SlotId slot, Time now) {
  last_ = last_.next();
  workers_[last_] = Worker{.slot = slot, .since = now};
  in_slot_.emplace(slot, last_);
  return last_;
}

void Pool::erase(WorkerId id) {
  const auto worker = workers_.find(id);
  if (worker == workers_.end()) return;
  in_slot_.erase(worker->second.slot);
  workers_.erase(worker);
}

Worker* Pool::find(WorkerId id) {
  const auto it = workers_.find(id);
  return it == workers_.end() ? nullptr : &it->second;
}

const Worker* Pool::find(WorkerId id) const {
  const auto it = workers_.find(id);
  return it == workers_.end() ? nullptr : &it->second;
}

void Pool::stood_still(Duration time) {
  for (auto& [id, worker] : workers_) {
    worker.since += time;
    if (worker.stop_at != never) worker.stop_at += time;
    if (worker.gone_by != never) worker.gone_by += time;
  }
}

std::optional<WorkerId> Pool::worker_in(SlotId slot) const {
  const auto found = in_slot_.find(slot);
  return found == in_slot_.end() ? std::nullopt : std::optional(found->second);
}

bool Pool::usable_by(SlotId slot, Time when, Time now) const {
  if (retired_.contains(slot) || quarantined(slot, now) || left_out(slot, now)) return false;
  const auto trouble = troubles_.find(slot);
  return trouble == troubles_.end() || trouble->second.not_before <= when;
}

bool Pool::all_retired() const {
  return !slots_.empty() &&
         std::ranges::all_of(slots_, [&](SlotId s) { return retired_.contains(s); });
}

bool Pool::has_substitute(int size, Time now) const {
  const auto sound = [&](SlotId slot) {
    const auto id = worker_in(slot);
    if (!id) return usable(slot, now);
    return !workers_.at(*id).expected && !quarantined(slot, now) && !left_out(slot, now);
  };
  return std::ranges::count_if(slots_, sound) > size;
}

std::vector<SlotId> Pool::wanted(int size, Time now, const std::vector<WorkerId>& members) const {
  std::vector<SlotId> wanted;
  std::vector<SlotId> free;
  std::vector<SlotId> last;
  for (const SlotId slot : slots_) {
    const auto id = worker_in(slot);
    if (id && !workers_.at(*id).expected)
      (quarantined(slot, now) || left_out(slot, now) ? last : wanted).push_back(slot);
    else if (!id && usable(slot, now))
      free.push_back(slot);
    // A slot whose worker is on its way out is neither: it is free when that one has gone.
  }
  const auto limit = static_cast<std::size_t>(std::max(size, 0));
  // Too many: the last ones go, those who are still starting first, then those who only wait.
  const std::set<WorkerId> in_world(members.begin(), members.end());
  const auto starts = [&](SlotId slot) { return !workers_.at(*worker_in(slot)).ready; };
  const auto waits = [&](SlotId slot) { return !in_world.contains(*worker_in(slot)); };
  const auto leave = [&](auto goes) {
    for (auto i = wanted.size(); i-- > 0 && wanted.size() > limit;)
      if (goes(wanted[i])) wanted.erase(wanted.begin() + static_cast<std::ptrdiff_t>(i));
  };
  leave(starts);
  leave(waits);
  leave([](SlotId) { return true; });
  for (const auto& more : {free, last})
    for (const SlotId slot : more)
      if (wanted.size() < limit) wanted.push_back(slot);
  return wanted;
}

namespace {

// 1 s, 2 s, 4 s, ... 5 m: after so many times before.
Duration pause_after(int times) {
  return std::min<Duration>(std::chrono::seconds(1 << std::min(times, 10)),
                            std::chrono::minutes(5));
}

}  // namespace

void Pool::slot_failed(SlotId slot, Time now) {
  Trouble& trouble = troubles_[slot];
  const int before = trouble.failures++;
  trouble.not_before = before == 0 ? now : now + pause_after(before - 1);
}

void Pool::host_failed(SlotId slot, Time now) {
  Trouble& trouble = troubles_[slot];
  trouble.failures = std::max(trouble.failures, 1);
  slot_failed(slot, now);
}

Duration Pool::quarantine(SlotId slot, Time now) {
  Quarantine& one = quarantines_[slot];
  const int doublings = std::min(one.times++, 5);
  const Duration time = std::chrono::minutes(10) * (1 << doublings);
  one.until = now + time;
  return time;
}

Duration Pool::leave_out(SlotId slot, Time now) {
  Trouble& trouble = left_out_[slot];
  const Duration pause = pause_after(trouble.failures++);
  trouble.not_before = now + pause;
  return pause;
}

bool Pool::left_out(SlotId slot, Time now) const {
  const auto found = left_out_.find(slot);
  return found != left_out_.end() && now < found->second.not_before;
}

void Pool::slot_works(SlotId slot) {
  troubles_.erase(slot);
  left_out_.erase(slot);
}

bool Pool::quarantined(SlotId slot, Time now) const {
  const auto found = quarantines_.find(slot);
  return found != quarantines_.end() && now < found->second.until;
}

Time Pool::wake_at(Time now) const {
  Time at = never;
  for (const SlotId slot : slots_) {
    const auto trouble = troubles_.find(slot);
    if (trouble != troubles_.end() && trouble->second.not_before > now)
      at = std::min(at, trouble->second.not_before);
    if (quarantined(slot, now)) at = std::min(at, quarantines_.at(slot).until);
    if (left_out(slot, now)) at = std::min(at, left_out_.at(slot).not_before);
  }
  return at;
}

}  // namespace elasticrun::job
