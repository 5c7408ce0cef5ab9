// A member in a world of two, for its tests.
#pragma once

#include <chrono>
#include <cstdint>

#include "worker/core/member.hpp"

namespace elasticrun::worker::core {

inline const Time noon = Time{} + std::chrono::hours(12);

inline wire::World world(std::uint64_t generation, bool holder) {
  wire::World world{.generation = Generation(generation)};
  world.members = {{WorkerId(1), HostId(), 0, holder}, {WorkerId(2), HostId(), 1, true}};
  return world;
}

// A member in generation 1 at step 0, with generation 2 prepared and its Go received.
inline Member in_world() {
  Member member{WorkerId(1)};
  member.ready({.call = 1});
  member.receive(wire::Prepare{world(1, true)});
  member.formed(Generation(1), "gloo");
  member.receive(wire::Go{Generation(1), true});
  member.begin_transfer();
  member.entered({.step = StepId(0)});
  member.receive(wire::Prepare{world(2, true)});
  member.formed(Generation(2), "gloo");
  member.receive(wire::Go{Generation(2)});
  member.take_outbox();
  return member;
}

}  // namespace elasticrun::worker::core
