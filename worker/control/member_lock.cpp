// See member_lock.hpp.
#include "worker/control/member_lock.hpp"

#include <utility>
#include <variant>
#include <vector>

namespace elasticrun::worker::control {

void Gate::carry_out() {
  for (;;) {
    std::vector<core::MemberAction> actions = member_.take_outbox();
    if (actions.empty()) return;
    for (core::MemberAction& action : actions) courier_->carry(member_, std::move(action));
  }
}

void Gate::receive(const wire::ToWorker& letter) {
  update([&](core::Member& member) {
    if (std::holds_alternative<wire::Abort>(letter)) member.held_up(courier_->held_up());
    member.receive(letter);
  });
  changed_.notify_all();
}

void Gate::lose(const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    is_lost_ = true;
    lost_ = reason;
    // Wakes a training thread that waits inside a collective.
    courier_->carry(member_, core::AbortGroups{Generation(~0ULL)});
  }
  changed_.notify_all();
}

std::optional<core::Task> Gate::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return is_lost_ || member_.task() != core::Task::wait; });
  const core::Task task = member_.task();
  const bool final = task == core::Task::released || task == core::Task::evicted;
  if (is_lost_ && !final) return std::nullopt;
  return task;
}

std::string Gate::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

}  // namespace elasticrun::worker::control
