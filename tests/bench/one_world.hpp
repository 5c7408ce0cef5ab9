// A world that never changes, for benchmarks of the library without elasticrun: what its controller
// would say.
#pragma once

#include <utility>
#include <variant>

#include "worker/control/control_channel.hpp"
#include "worker/core/member.hpp"

namespace elasticrun::bench {

// A controller with only one world, whose group is connected already.
class OneWorld final : public worker::control::ControlChannel {
 public:
  OneWorld(worker::collective::Group& group, wire::World world)
      : group_(group), world_(std::move(world)) {}

  void carry(worker::core::Member& member, worker::core::MemberAction action) override {
    if (const auto* send = std::get_if<worker::core::Send>(&action))
      return answer(member, send->message);
    if (std::holds_alternative<worker::core::FormGroup>(action))
      member.published(world_.generation, "-");
    if (std::holds_alternative<worker::core::ConnectGroup>(action))
      member.formed(world_.generation, {});
  }
  worker::collective::Group* acquire(Generation) override { return &group_; }
  void release(Generation) override {}

 private:
  void answer(worker::core::Member& member, const wire::FromWorker& message) {
    if (std::holds_alternative<wire::Ready>(message)) member.receive(wire::Prepare{world_});
    if (std::holds_alternative<wire::Publish>(message))
      member.receive(wire::Gathered{world_.generation, {}});
    if (std::holds_alternative<wire::Prepared>(message))
      member.receive(wire::Go{world_.generation, true});
    if (const auto* done = std::get_if<wire::Done>(&message))
      member.receive(wire::Release{done->call});
  }

  worker::collective::Group& group_;
  const wire::World world_;
};

inline wire::World world_of(int size, std::int64_t batch, bool noise) {
  wire::World world{.generation = Generation(1),
                    .plan = {.global_batch = batch, .noise_base = noise ? batch : 0}};
  for (int rank = 0; rank < size; ++rank)
    world.members.push_back({.worker = WorkerId(static_cast<std::uint32_t>(rank) + 1),
                             .host = HostId(1),
                             .slot = rank,
                             .holds_state = true});
  return world;
}

}  // namespace elasticrun::bench
