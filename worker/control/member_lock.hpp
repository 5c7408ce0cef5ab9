// The lock around a Member, and the place where the training thread waits for it.
//
// What a Member wants done is handed to the channel before the lock is released, so messages leave
// in the order in which they were decided, whichever thread decided: an Answer can never overtake
// the Committed before it.
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

  // Once, before anything else; the channel outlives all other calls.
  void attach(ControlChannel& channel) { channel_ = &channel; }

  // Any thread: f(member) under the lock, then what the member asks for.
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
  // The agent is gone: no message will come any more.
  void lose(const std::string& reason);

  // Training thread: what to do next, never Task::wait. Nothing: the agent is gone.
  std::optional<core::Task> wait();
  std::string lost() const;

 private:
  void carry_out();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  core::Member member_;
  ControlChannel* channel_ = nullptr;
  bool is_lost_ = false;
  std::string lost_;
};

}  // namespace elasticrun::worker::control
