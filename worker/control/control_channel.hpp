// Carries out the actions of a Member: through the agent and the background threads, or, in a world
// of one, by a few lines that answer at once.
//
// There are two implementations (agent_channel.hpp, standalone.hpp), so that a program runs the
// same code alone and under elasticrun.
#pragma once

#include <utility>
#include <vector>

#include "worker/collective/group.hpp"
#include "worker/core/member.hpp"

namespace elasticrun::worker::control {

class ControlChannel {
 public:
  virtual ~ControlChannel() = default;

  // Called under the member lock: must not block, must not take the lock again, and may call the
  // member, whose next actions are carried out after this one.
  virtual void carry(core::Member& member, core::MemberAction action) = 0;

  // Training thread: borrows the connected group of a generation, to be released before another one
  // is borrowed. Null when the group has been dropped meanwhile.
  virtual collective::Group* acquire(Generation generation) = 0;
  virtual void release(Generation generation) = 0;

  // Any thread but the channel's own: waits until the agent has the messages sent, 2 s at most.
  virtual void flush() {}

  // Any thread: for each group that is held up at present, what it waits for.
  virtual std::vector<collective::HeldUp> held_up() const { return {}; }
};

}  // namespace elasticrun::worker::control
