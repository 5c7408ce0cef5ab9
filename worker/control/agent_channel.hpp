// Under elasticrun: letters go to the agent, groups to the background thread.
#pragma once

#include <memory>

#include "worker/control/connection.hpp"
#include "worker/control/control_channel.hpp"
#include "worker/control/group_builder.hpp"
#include "worker/control/member_lock.hpp"
#include "worker/control/step_meter.hpp"

namespace elasticrun::worker::control {

class AgentCourier final : public Courier {
 public:
  // Connects and attaches itself to the gate; gate and meter outlive it.
  static Result<std::unique_ptr<AgentCourier>> open(const ConnectionOptions& options,
                                                    std::unique_ptr<collective::DataPlane> plane,
                                                    Gate& gate, Meter& meter);
  ~AgentCourier() override;

  void carry(core::Member& member, core::MemberAction action) override;
  collective::Group* borrow(Generation generation) override { return former_.borrow(generation); }
  void give_back(Generation generation) override { former_.give_back(generation); }
  std::vector<collective::HeldUp> held_up() const override { return former_.held_up(); }

 private:
  AgentCourier(std::unique_ptr<collective::DataPlane> plane, Gate& gate);

  Former former_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace elasticrun::worker::control
