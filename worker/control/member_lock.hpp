// The lock around a Member, and the place where the training thread waits for its next task.
//
// The actions of a Member are handed to the channel before the lock is released, so messages leave
// in the order in which they were decided, by either thread: an Answer can never overtake the
// Committed before it.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>

#include "worker/control/control_channel.hpp"
#include "worker/core/member.hpp"

namespace elasticrun::worker::control {

class MemberLock {
 public:
  explicit MemberLock(WorkerId self) : member_(self) {}

  // Called once, before anything else; the channel outlives all other calls.
  void attach(ControlChannel& channel) { channel_ = &channel; }

  // Any thread: calls f(member) under the lock, carries out the member's actions, and returns the
  // result of f.
  template <class F>
  auto update(F&& f) {
    const std::lock_guard lock(mutex_);
    if constexpr (std::is_void_v<std::invoke_result_t<F&, core::Member&>>) {
      f(member_);
      carry_out();
    } else {
      auto result = f(member_);
      carry_out();
      return result;
    }
  }

  // Control thread.
  void receive(const wire::ToWorker& message);
  // The connection to the agent is lost: no more messages will come.
  void lose(const std::string& reason);

  // Training thread: waits for the next task, which is never Task::wait. Nullopt: the agent is
  // gone.
  std::optional<core::Task> wait();
  // The program's thread: leaves the world, and returns when no peer needs this worker's groups,
  // the agent is gone, or 30 seconds have passed. Then all groups are closed, and the process may
  // end at once: the agent has its message.
  void leave(const std::string& reason);
  // Why the agent is gone; empty while it is not.
  std::string lost() const;

 private:
  void carry_out();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  core::Member member_;
  ControlChannel* channel_ = nullptr;
  std::optional<std::string> lost_;  // why the agent is gone
};

}  // namespace elasticrun::worker::control
