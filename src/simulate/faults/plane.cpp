// See plane.hpp.
#include "simulate/faults/plane.hpp"

#include <algorithm>
#include <utility>

#include "worker/core/transfer_plan.hpp"

namespace elasticrun::simulate::faults {
namespace {

// Time a kernel takes to find out that its retransmissions are lost.
constexpr Duration loss_found_after = std::chrono::milliseconds(30);
// Large enough for several parts, so that all holders of the state send.
constexpr std::uint64_t state_bytes = 4u << 20;
constexpr const char* lost_words = "what is sent to it does not arrive";

HostId host_of(const wire::World& world, int rank) {
  return world.members[static_cast<std::size_t>(rank)].host;
}

WorkerId worker_at(const wire::World& world, int rank) {
  return world.members[static_cast<std::size_t>(rank)].worker;
}

int rank_of(const wire::World& world, WorkerId worker) {
  return static_cast<int>(std::ranges::find(world.members, worker, &wire::Member::worker) -
                          world.members.begin());
}

}  // namespace

Duration Plane::soon(int most_us) {
  return std::chrono::microseconds(1 + rng_.below(static_cast<std::uint64_t>(most_us)));
}

void Plane::create(const wire::World& world, WorkerId worker, int size) {
  Group& group = groups_[world.generation];
  if (group.world.members.empty()) group.world = world;
  group.size = static_cast<std::size_t>(size);
  group.ends[worker];
}

bool Plane::somebody_gone(const Group& group) const {
  return std::ranges::any_of(group.ends, [](const auto& e) { return e.second.gone; });
}

// ---------------------------------------------------------------- calls

void Plane::connect(Generation generation, WorkerId worker, Duration limit, Done done) {
  call(generation, worker, connecting, {}, nullptr, std::move(done));
  queue_.after(limit, [=, this] { out_of_time(generation, worker); });
  const Group& group = groups_[generation];
  const int rank = rank_of(group.world, worker);
  for (const auto& [peer, end] : group.ends)  // a peer that is gone does not listen any more
    if (const int other = rank_of(group.world, peer); end.gone && other < rank && rng_.chance(0.7))
      queue_.after(soon(500), [=, this] {
        fail(generation, worker, connecting, {{other, true, "connection refused"}});
      });
}

void Plane::transfer(Generation generation, WorkerId worker, Complete complete, Done done) {
  call(generation, worker, moving_state, {}, std::move(complete), std::move(done));
}

void Plane::reduce(Generation generation, WorkerId worker, int index, const Votes& votes,
                   Complete complete, Done done) {
  call(generation, worker, first_reduction + index, votes, std::move(complete), std::move(done));
}

void Plane::call(Generation generation, WorkerId worker, int index, const Votes& votes,
                 Complete complete, Done done) {
  Group& group = groups_[generation];
  End& end = group.ends[worker];
  if (end.gone) return queue_.after(soon(500), [done] { done({}); });
  end.index = index;
  end.since = queue_.now();
  end.pending = std::move(done);
  Call& call = group.calls[index];
  call.arrived.insert(worker);
  call.sum += votes;
  call.complete = std::move(complete);
  if (index == connecting || !somebody_gone(group)) return settle(generation, index);
  const bool last = call.arrived.size() == group.size;
  // What the others sent before they went is enough for the last member to arrive, and only for it.
  if (last && rng_.chance(0.5) && !in_ring(group, rank_of(group.world, worker)).blocked)
    serve(generation, call, worker, index);
  else if (rng_.chance(0.5))
    queue_.after(soon(5000),
                 [=, this] { fail(generation, worker, index, hung_up(groups_[generation])); });
}

// Finishes the call for each member that can, now that a member has arrived or a link has changed.
void Plane::settle(Generation generation, int index) {
  Group& group = groups_[generation];
  Call& call = group.calls[index];
  const bool all = call.arrived.size() >= group.size;
  if (index != connecting) {
    if (!all || somebody_gone(group)) return;
    const bool stuck = index >= first_reduction && !links_.all_well() && in_ring(group, 0).blocked;
    if (stuck) return;
    if (!std::exchange(call.completed, true) && call.complete) call.complete();
  }
  for (const WorkerId member : call.arrived)
    if (!call.served.contains(member) &&
        !obstacle(group, call, rank_of(group.world, member), index).blocked)
      serve(generation, call, member, index);
}

void Plane::serve(Generation generation, Call& call, WorkerId worker, int index) {
  call.served.insert(worker);
  queue_.after(soon(3000), [=, this] { deliver(generation, worker, index); });
}

void Plane::deliver(Generation generation, WorkerId worker, int index) {
  Group& group = groups_[generation];
  End& end = group.ends[worker];
  // This also runs after this end was aborted: the result may have arrived before.
  if (end.index != index || !end.pending) return;
  const Done done = std::exchange(end.pending, nullptr);
  if (index != connecting && somebody_gone(group) && rng_.chance(0.5))
    return done({{}, hung_up(group)});
  done({group.calls[index].sum, {}});
}

void Plane::fail(Generation generation, WorkerId worker, int index,
                 std::vector<worker::collective::PeerTrouble> why) {
  End& end = groups_[generation].ends[worker];
  if (end.index != index || !end.pending) return;
  // A lost link is a better explanation than the peers that have hung up because of it.
  if (!links_.all_well() && index != connecting)
    for (const auto& group : held_up(worker))
      if (group.generation == generation && !group.lost_links.empty()) why = group.lost_links;
  const Done done = std::exchange(end.pending, nullptr);
  done({{}, std::move(why)});
}

void Plane::out_of_time(Generation generation, WorkerId worker) {
  const Group& group = groups_[generation];
  const End& end = group.ends.at(worker);
  if (end.index != connecting || !end.pending) return;
  // It is connected, and is about to be told.
  if (group.calls.at(connecting).served.contains(worker)) return;
  std::vector<worker::collective::PeerTrouble> troubles;
  for (const int peer :
       unconnected(group, group.calls.at(connecting), rank_of(group.world, worker)).waits_for)
    troubles.push_back({peer, false, "did not answer or dial"});
  fail(generation, worker, connecting, std::move(troubles));
}

// ---------------------------------------------------------------- members that leave

std::vector<worker::collective::PeerTrouble> Plane::hung_up(const Group& group) const {
  std::vector<worker::collective::PeerTrouble> troubles;
  for (const auto& [worker, end] : group.ends)
    if (end.gone) troubles.push_back({rank_of(group.world, worker), true, "closed by peer"});
  return troubles;
}

// Peers may or may not notice that a worker leaves: only ring neighbours see a connection close. A
// peer that waits for the worker to dial finds out only when its time limit passes.
void Plane::leave(Generation generation, Group& group, WorkerId worker, bool alive) {
  const auto end = group.ends.find(worker);
  if (end == group.ends.end() || end->second.gone) return;
  end->second.gone = true;
  if (end->second.pending && alive)
    queue_.after(soon(500),
                 [=, this, index = end->second.index] { fail(generation, worker, index, {}); });
  const int rank = rank_of(group.world, worker);
  for (const auto& [peer, other] : group.ends) {
    if (peer == worker || !other.pending || group.calls[other.index].served.contains(peer))
      continue;
    const bool dials = other.index != connecting || rank_of(group.world, peer) > rank;
    if (!dials || !rng_.chance(0.5)) continue;
    std::vector<worker::collective::PeerTrouble> why{{rank, true, "closed by peer"}};
    queue_.after(soon(5000),
                 [=, this, index = other.index] { fail(generation, peer, index, why); });
  }
}

bool Plane::has_group(WorkerId worker, Generation generation) const {
  const auto group = groups_.find(generation);
  if (group == groups_.end()) return false;
  const auto end = group->second.ends.find(worker);
  return end != group->second.ends.end() && !end->second.gone;
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

// ---------------------------------------------------------------- what holds a call up

void Plane::change_links(const std::function<void(Links&)>& change) {
  change(links_);
  std::set<std::pair<Generation, int>> open;
  for (const auto& [generation, group] : groups_)
    for (const auto& [worker, end] : group.ends)
      if (end.pending) open.emplace(generation, end.index);
  for (const auto& [generation, index] : open) settle(generation, index);
}

Plane::Obstacle Plane::obstacle(const Group& group, const Call& call, int rank, int index) const {
  if (index == connecting) return unconnected(group, call, rank);
  if (links_.all_well()) return {};
  return index == moving_state ? in_transfer(group, rank) : in_ring(group, rank);
}

Plane::Obstacle Plane::unconnected(const Group& group, const Call& call, int rank) const {
  Obstacle found;
  const wire::World& world = group.world;
  const auto size = static_cast<int>(world.members.size());
  for (int peer = 0; peer < size; ++peer)
    if (peer != rank && (!call.arrived.contains(worker_at(world, peer)) ||
                         !links_.greets(host_of(world, rank), host_of(world, peer))))
      found.waits_for.push_back(peer);
  found.blocked = !found.waits_for.empty();
  return found;
}

// All members agree first, by small messages around the ring; then each part takes its route.
Plane::Obstacle Plane::in_transfer(const Group& group, int rank) const {
  const wire::World& world = group.world;
  const auto size = static_cast<int>(world.members.size());
  Obstacle found;
  for (int from = 0; from < size; ++from) {
    const int to = (from + 1) % size;
    if (links_.greets(host_of(world, from), host_of(world, to))) continue;
    found.blocked = true;
    if (from == rank) found.lost.push_back(to);
  }
  if (found.blocked) return found;
  std::vector<bool> holds;
  for (const auto& member : world.members) holds.push_back(member.holds_state);
  for (const auto& part : worker::core::plan_transfer(holds, state_bytes)) {
    const auto& route = part.route;
    const auto place = std::ranges::find(route, rank) - route.begin();
    const auto passes = [&](std::ptrdiff_t hop) {
      return links_.carries(host_of(world, route[static_cast<std::size_t>(hop)]),
                            host_of(world, route[static_cast<std::size_t>(hop) + 1]));
    };
    if (place == std::ssize(route)) continue;
    for (std::ptrdiff_t hop = 0; hop < place; ++hop)
      if (!passes(hop)) {
        found.waits_for.push_back(route[static_cast<std::size_t>(place) - 1]);
        break;
      }
    if (place + 1 < std::ssize(route) && !passes(place)) {
      found.waits_for.push_back(route[static_cast<std::size_t>(place) + 1]);
      found.lost.push_back(route[static_cast<std::size_t>(place) + 1]);
    }
  }
  found.blocked = !found.waits_for.empty();
  return found;
}

// A reduction goes around the ring, and needs all of it.
Plane::Obstacle Plane::in_ring(const Group& group, int rank) const {
  const wire::World& world = group.world;
  const auto size = static_cast<int>(world.members.size());
  Obstacle found;
  for (int from = 0; from < size; ++from) {
    const int to = (from + 1) % size;
    if (links_.carries(host_of(world, from), host_of(world, to))) continue;
    found.blocked = true;
    if (from == rank) found.lost.push_back(to);
  }
  return found;
}

std::vector<worker::collective::HeldUp> Plane::held_up(WorkerId worker) const {
  std::vector<worker::collective::HeldUp> all;
  for (const auto& [generation, group] : groups_) {
    const auto end = group.ends.find(worker);
    if (end == group.ends.end() || end->second.gone || !end->second.pending) continue;
    const Call& call = group.calls.at(end->second.index);
    if (call.served.contains(worker)) continue;
    const Obstacle found = obstacle(group, call, rank_of(group.world, worker), end->second.index);
    worker::collective::HeldUp one{generation, found.waits_for, {}};
    const bool known = queue_.now() - end->second.since >= loss_found_after;
    if (known && end->second.index != connecting)
      for (const int peer : found.lost) one.lost_links.push_back({peer, false, lost_words});
    if (!one.waits_for.empty() || !one.lost_links.empty()) all.push_back(std::move(one));
  }
  return all;
}

bool Plane::has_lost_link(WorkerId worker) const {
  if (links_.all_well()) return false;
  return std::ranges::any_of(held_up(worker),
                             [](const auto& one) { return !one.lost_links.empty(); });
}

}  // namespace elasticrun::simulate::faults
