// See member_lock.hpp.
#include "worker/control/member_lock.hpp"

#include <chrono>
#include <utility>
#include <variant>
#include <vector>

namespace elasticrun::worker::control {
namespace {

// For the peers to end their step: longer than --abort-timeout, unless a user has raised that.
constexpr auto leave_patience = std::chrono::seconds(30);

}  // namespace

void MemberLock::carry_out() {
  for (;;) {
    std::vector<core::MemberAction> actions = member_.take_outbox();
    if (actions.empty()) return;
    for (core::MemberAction& action : actions) channel_->carry(member_, std::move(action));
  }
}

void MemberLock::receive(const wire::ToWorker& message) {
  update([&](core::Member& member) {
    if (std::holds_alternative<wire::Abort>(message)) member.held_up(channel_->held_up());
    member.receive(message);
  });
  changed_.notify_all();
}

void MemberLock::lose(const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    lost_ = reason;
    // Wakes a training thread that waits inside a collective.
    channel_->carry(member_, core::AbortGroups{Generation(~0ULL)});
  }
  changed_.notify_all();
}

std::optional<core::Task> MemberLock::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return lost_ || member_.task() != core::Task::wait; });
  const core::Task task = member_.task();
  const bool final = task == core::Task::released || task == core::Task::evicted;
  if (lost_ && !final) return std::nullopt;
  return task;
}

void MemberLock::leave(const std::string& reason) {
  std::unique_lock lock(mutex_);
  member_.leave(reason);
  carry_out();
  changed_.wait_for(lock, leave_patience, [this] { return lost_ || !member_.leaves(); });
  channel_->carry(member_, core::AbortGroups{Generation(~0ULL)});
  lock.unlock();
  channel_->flush();
}

std::string MemberLock::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_.value_or("");
}

}  // namespace elasticrun::worker::control
