// Under elasticrun: letters go to the agent, groups to the background thread.
#pragma once

#include <memory>

#include "worker/connection.hpp"
#include "worker/courier.hpp"
#include "worker/former.hpp"
#include "worker/gate.hpp"
#include "worker/meter.hpp"

namespace elasticrun::worker {

class AgentCourier final : public Courier {
 public:
  // Connects and attaches itself to the gate; gate and meter outlive it.
  static Result<std::unique_ptr<AgentCourier>> open(const ConnectionOptions& options,
                                                    std::unique_ptr<DataPlane> plane, Gate& gate,
                                                    Meter& meter);
  ~AgentCourier() override;

  void carry(Member& member, MemberAction action) override;
  Group* borrow(Generation generation) override { return former_.borrow(generation); }
  void give_back(Generation generation) override { former_.give_back(generation); }
  std::vector<HeldUp> held_up() const override { return former_.held_up(); }

 private:
  AgentCourier(std::unique_ptr<DataPlane> plane, Gate& gate);

  Former former_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace elasticrun::worker
