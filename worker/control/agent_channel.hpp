// The channel of a worker under elasticrun: messages go to the agent, groups to the group builder.
#pragma once

#include <memory>

#include "worker/control/connection.hpp"
#include "worker/control/control_channel.hpp"
#include "worker/control/group_builder.hpp"
#include "worker/control/member_lock.hpp"
#include "worker/control/step_meter.hpp"

namespace elasticrun::worker::control {

class AgentChannel final : public ControlChannel {
 public:
  // Connects to the agent and attaches itself to the member lock; the lock and the meter outlive
  // it.
  static Result<std::unique_ptr<AgentChannel>> open(const ConnectionOptions& options,
                                                    std::unique_ptr<collective::DataPlane> plane,
                                                    MemberLock& member_lock, StepMeter& meter);
  ~AgentChannel() override;

  void carry(core::Member& member, core::MemberAction action) override;
  void flush() override;
  collective::Group* acquire(Generation generation) override {
    return builder_.acquire(generation);
  }
  void release(Generation generation) override { builder_.release(generation); }
  std::vector<collective::HeldUp> held_up() const override { return builder_.held_up(); }

 private:
  AgentChannel(std::unique_ptr<collective::DataPlane> plane, MemberLock& member_lock);

  GroupBuilder builder_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace elasticrun::worker::control
