// The channel of a program that runs without elasticrun, in a world of one: it answers each message
// at once, as a controller with this worker alone would.
//
// So a program takes the same samples and makes the same updates, by the same code, alone and under
// elasticrun with one worker. No thread and no socket is needed.
#pragma once

#include <memory>

#include "worker/control/control_channel.hpp"

namespace elasticrun::worker::control {

inline constexpr WorkerId solo_worker{1};

class Standalone final : public ControlChannel {
 public:
  explicit Standalone(std::unique_ptr<collective::DataPlane> plane) : plane_(std::move(plane)) {}

  void carry(core::Member& member, core::MemberAction action) override;
  collective::Group* acquire(Generation) override { return group_.get(); }
  void release(Generation) override {}

 private:
  void answer(core::Member& member, const wire::FromWorker& message);
  void prepare(core::Member& member);
  void form(core::Member& member, const core::FormGroup& order);

  const std::unique_ptr<collective::DataPlane> plane_;
  std::unique_ptr<collective::Group> group_;
  wire::World world_;
};

}  // namespace elasticrun::worker::control
