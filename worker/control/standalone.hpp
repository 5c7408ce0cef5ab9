// A world of one, for a program that runs without elasticrun: answers each letter at once, as a
// controller with this worker alone would.
//
// So alone and under elasticrun with one worker a program takes the same samples and makes the same
// updates, by the same code. It needs no thread and no socket.
#pragma once

#include <memory>

#include "worker/control/control_channel.hpp"

namespace elasticrun::worker::control {

inline constexpr WorkerId solo_worker{1};

class Solo final : public Courier {
 public:
  explicit Solo(std::unique_ptr<collective::DataPlane> plane) : plane_(std::move(plane)) {}

  void carry(core::Member& member, core::MemberAction action) override;
  collective::Group* borrow(Generation) override { return group_.get(); }
  void give_back(Generation) override {}

 private:
  void answer(core::Member& member, const wire::FromWorker& letter);
  void prepare(core::Member& member);
  void form(core::Member& member, const core::FormGroup& order);

  const std::unique_ptr<collective::DataPlane> plane_;
  std::unique_ptr<collective::Group> group_;
  wire::World world_;
};

}  // namespace elasticrun::worker::control
