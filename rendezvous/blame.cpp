// The part of membership.hpp that decides which workers are left out of the next attempt, when a
// world could not be formed or broke before its first step.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "rendezvous/membership.hpp"

namespace elasticrun::rendezvous {

void Membership::note(WorkerId from, Generation generation,
                      const std::vector<wire::Complaint>& complaints) {
  const bool present = running_ && running_->world.generation == generation;
  const bool coming = forming_ && forming_->world.generation == generation;
  const bool aborted = aborting_ && generation <= aborting_->up_to;
  if (present || coming || aborted) complaints_.add(from, complaints, aborted);
}

std::vector<WorkerId> Membership::newcomers_of(const wire::World& world) const {
  std::vector<WorkerId> newcomers;
  for (const auto& member : world.members)
    if (const auto peer = peers_.find(member.worker); peer != peers_.end() && !peer->second.settled)
      newcomers.push_back(member.worker);
  return newcomers;
}

// A member of the world that goes on while this one forms is not a newcomer.
std::vector<WorkerId> Membership::newcomers_of(const Forming& forming) const {
  std::vector<WorkerId> newcomers = newcomers_of(forming.world);
  if (!forming.at_once) std::erase_if(newcomers, [&](WorkerId w) { return is_member(w); });
  return newcomers;
}

void Membership::count_failure(Time now) {
  if (failed_forms_++ == 0) failing_since_ = now;
}

// A link that loses every packet costs an attempt its whole timeout, so two such attempts are
// enough; a refused connection fails at once, so it takes more attempts and a minimum of time.
bool Membership::failed_too_often(Time now) const {
  const bool for_long = failed_forms_ > 1 && now >= failing_since_ + options_.prepare_timeout;
  const bool for_a_while = now >= failing_since_ + failing_min;
  return for_long || (failed_forms_ > failed_forms_max && for_a_while);
}

// What fails at once may work a moment later: a firewall is being reloaded, or a machine is short
// of ports.
Duration Membership::form_pause() const {
  if (failed_forms_ < 2) return Duration::zero();
  return std::min<Duration>(form_pause_min * (1 << std::min(failed_forms_ - 2, 10)),
                            form_pause_max);
}

// The only worker with the newest state; 0: there are several, or none.
WorkerId Membership::only_holder() const {
  StepId newest = no_state;
  for (const auto& [worker, peer] : peers_)
    if (!peer.left) newest = std::max(newest, peer.committed);
  WorkerId holder;
  for (const auto& [worker, peer] : peers_) {
    if (peer.left || newest == no_state || peer.committed != newest) continue;
    if (holder != WorkerId()) return {};
    holder = worker;
  }
  return holder;
}

void Membership::leave_out(WorkerId worker, std::string why) {
  outbox_.push_back(LeftOut{worker, std::move(why)});
}

// Called when all workers that were asked have answered or are gone. Newcomers that are to blame
// are left out of the next world; members only when no world can be formed with them. Returns the
// newcomers that are left out.
std::set<WorkerId> Membership::settle_complaints(const Aborting& aborted, Time now) {
  // Workers that call different collectives would break one world after the other.
  if (aborted.stepless && !aborted.somebody_died) count_failure(now);
  std::set<WorkerId> newcomers, members, left_out;
  // Where all stand still, a newcomer that has received the state but has not stepped with it still
  // counts as a newcomer. Otherwise it counts as a member: it may be about to find out by itself
  // that it does not fit, and to end.
  StepId kept = no_state;
  for (const auto& [worker, peer] : peers_)
    if (aborted.stalled && peer.settled && !peer.left) kept = std::max(kept, peer.committed);
  for (const auto& [worker, peer] : peers_) {
    const bool has_state = peer.settled || peer.committed > kept;
    if (is_training(worker)) (has_state ? members : newcomers).insert(worker);
  }
  auto blamed = complaints_.verdict(newcomers, members, only_holder(), aborted.somebody_died);
  // No worker is named in a complaint and none died. Where there are members that have stepped,
  // they go on without the newcomers. Where there are none, one newcomer has to go if forming keeps
  // failing. Where there were no newcomers, it is the member that reported the failure.
  if (blamed.empty() && !aborted.somebody_died) {
    const std::set<WorkerId> came(aborted.newcomers.begin(), aborted.newcomers.end());
    for (const WorkerId worker : newcomers)
      if (!members.empty() && came.contains(worker)) blamed.push_back({worker, abort_reason_});
    if (members.empty() && failed_too_often(now) && !aborted.newcomers.empty())
      blamed.push_back({aborted.newcomers.back(), abort_reason_});
    if (aborted.newcomers.empty() && members.contains(aborted.messenger))
      blamed.push_back({aborted.messenger, abort_reason_});
  }
  const bool too_often = failed_too_often(now);
  for (Blamed& one : blamed) {
    if (newcomers.contains(one.worker)) {
      left_out.insert(one.worker);
      rank_table_.vacate(one.worker);
      leave_out(one.worker, std::move(one.why));
    } else if (too_often && std::exchange(failed_forms_, 0) > 0) {
      give_up({one.worker}, one.why, now);  // one at a time: the rest may form without it
    }
  }
  if (too_often) failed_forms_ = 0;
  return left_out;
}

}  // namespace elasticrun::rendezvous
