#include "simulate/plane.hpp"

#include <algorithm>
#include <utility>

namespace elasticrun::simulate {

Duration Plane::soon(int most_us) {
  return std::chrono::microseconds(1 + rng_.below(static_cast<std::uint64_t>(most_us)));
}

void Plane::create(Generation generation, WorkerId worker, int size) {
  Group& group = groups_[generation];
  group.size = static_cast<std::size_t>(size);
  group.ends[worker];
}

bool Plane::somebody_gone(const Group& group) const {
  return std::ranges::any_of(group.ends, [](const auto& e) { return e.second.gone; });
}

void Plane::collective(Generation generation, WorkerId worker, int index, double value,
                       Complete complete, Done done) {
  Group& group = groups_[generation];
  End& end = group.ends[worker];
  if (end.gone) return queue_.after(soon(500), [done] { done(std::nullopt); });
  end.index = index;
  end.pending = std::move(done);
  Call& call = group.calls[index];
  call.arrived.insert(worker);
  call.sum += value;
  if (call.arrived.size() >= group.size && !somebody_gone(group)) {
    call.complete = true;
    if (complete) complete();
    for (const WorkerId member : call.arrived)
      queue_.after(soon(3000), [=, this] { deliver(generation, member, index); });
  } else if (call.arrived.size() == group.size && rng_.chance(0.5)) {
    // What the others had sent before they went is enough for the last one, and for it alone.
    queue_.after(soon(3000), [=, this] { deliver(generation, worker, index); });
  } else if (somebody_gone(group) && rng_.chance(0.5)) {
    queue_.after(soon(5000), [=, this] { fail(generation, worker, index); });
  }
}

void Plane::deliver(Generation generation, WorkerId worker, int index) {
  Group& group = groups_[generation];
  End& end = group.ends[worker];
  // Also after this end was aborted: the result may have been in already.
  if (end.index != index || !end.pending) return;
  const Done done = std::exchange(end.pending, nullptr);
  const bool broken = somebody_gone(group) && rng_.chance(0.5);
  done(broken ? std::nullopt : std::optional(group.calls[index].sum));
}

void Plane::fail(Generation generation, WorkerId worker, int index) {
  End& end = groups_[generation].ends[worker];
  if (end.index != index || !end.pending) return;
  const Done done = std::exchange(end.pending, nullptr);
  done(std::nullopt);
}

// Its peers may notice, and may not: only ring neighbours see a connection close.
void Plane::leave(Generation generation, Group& group, WorkerId worker, bool alive) {
  const auto end = group.ends.find(worker);
  if (end == group.ends.end() || end->second.gone) return;
  end->second.gone = true;
  if (end->second.pending && alive)
    queue_.after(soon(500),
                 [=, this, index = end->second.index] { fail(generation, worker, index); });
  for (const auto& [peer, other] : group.ends) {
    if (peer == worker || !other.pending || group.calls[other.index].complete) continue;
    if (rng_.chance(0.5))
      queue_.after(soon(5000), [=, this, index = other.index] { fail(generation, peer, index); });
  }
}

void Plane::abort(WorkerId worker, Generation up_to) {
  for (auto& [generation, group] : groups_)
    if (generation <= up_to) leave(generation, group, worker, true);
}

void Plane::drop(WorkerId worker, Generation generation) {
  leave(generation, groups_[generation], worker, true);
}

void Plane::died(WorkerId worker) {
  for (auto& [generation, group] : groups_) leave(generation, group, worker, false);
}

}  // namespace elasticrun::simulate
