// Carries what a Member decides to whoever does it: the agent and the background threads, or, in a
// world of one, a few lines that answer at once.
//
// Two of them exist (agent_channel.hpp, standalone.hpp), so that a program runs the same code alone
// and under elasticrun.
#pragma once

#include <utility>
#include <vector>

#include "worker/collective/group.hpp"
#include "worker/core/member.hpp"

namespace elasticrun::worker::control {

class ControlChannel {
 public:
  virtual ~ControlChannel() = default;

  // Under the member's lock: must not block, must not take the lock again, and may call the member,
  // whose next actions are carried after this one.
  virtual void carry(core::Member& member, core::MemberAction action) = 0;

  // Training thread: the connected group of a generation, to be given back before another one is
  // borrowed. Null when it has been dropped meanwhile.
  virtual collective::Group* acquire(Generation generation) = 0;
  virtual void release(Generation generation) = 0;

  // Any thread: what each group is held up by at present, of those that are.
  virtual std::vector<collective::HeldUp> held_up() const { return {}; }
};

}  // namespace elasticrun::worker::control
