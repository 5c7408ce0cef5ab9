// Ranks on the fake GPU, each one a thread, and checks of their memory.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/fakes/fake_gpu.hpp"
#include "tests/unit/worker/ranks.hpp"
#include "worker/gpu/nccl_group.hpp"

namespace elasticrun::worker::testing {

inline std::shared_ptr<gpu::Gpu> open_fake_gpu() {
  fake_gpu::set_ranks_are_threads();
  auto gpu = gpu::Gpu::open("n1", 0, {.cuda = FAKE_GPU, .nccl = FAKE_GPU});
  REQUIRE(gpu.has_value());
  return *gpu;
}

inline constexpr gpu::NcclLimits test_limits{.form = std::chrono::milliseconds(20'000),
                                             .stop = std::chrono::milliseconds(5'000)};

inline PlaneMaker nccl_planes(gpu::NcclLimits limits = test_limits) {
  return [=] {
    own_gpu = open_fake_gpu();
    return gpu::make_nccl_plane(own_gpu, limits);
  };
}

// Starts with empty records, and checks at the end that everything was released.
struct CleanGpu {
  CleanGpu() { fake_gpu::reset(); }
  ~CleanGpu() {
    CHECK(fake_gpu::communicators() == 0);
    CHECK(fake_gpu::device_bytes() == before + abandoned);
    CHECK(fake_gpu::streams() == 0);
    CHECK(fake_gpu::events() == 0);
    fake_gpu::set_version(22809);
  }
  const std::size_t before = fake_gpu::device_bytes();
  std::size_t abandoned = 0;  // on a GPU that was lost, and so never freed
};

}  // namespace elasticrun::worker::testing
