// --backend auto: the data plane that all ranks of a world can use.
#include "worker/api/auto_plane.hpp"

#include "tests/unit/worker/gpu/gpu_ranks.hpp"

using namespace elasticrun;
using namespace elasticrun::worker::collective;
using namespace elasticrun::worker::gpu;
using namespace elasticrun::worker::api;
using namespace elasticrun::worker::testing;

namespace {

// Checks sums in both memories in a world of three, where rank `without` has no GPU (-1: all have
// one).
void check_world(int without, bool over_nccl) {
  const CleanGpu clean;
  run_planes(3, [&](int rank, DataPlane&, Exchange& exchange) {
    const auto gpu = rank == without ? nullptr : open_fake_gpu();
    const auto plane = make_auto_plane(make_gloo_plane({}),
                                       gpu ? make_nccl_plane(gpu, test_limits) : nullptr, &gpu);
    const auto group = form(*plane, exchange, rank, 3);
    CHECK(group->in_rounds() == over_nccl);
    std::vector<float> data(1000, static_cast<float>(rank));
    group->all_reduce(data.data(), DataType::float32, data.size());
    CHECK(data[999] == 3);
    // The last one takes another way over Gloo than the one before.
    double vote = 1;
    const auto sum = [&](float* numbers, std::size_t count) {
      const Group::Row rows[] = {{numbers, DataType::float32, count},
                                 {&vote, DataType::float64, 1, true}};
      group->all_reduce_each(rows);
    };
    sum(data.data(), data.size());
    CHECK(data[999] == 9);
    CHECK(vote == 3);
    std::string text(5, rank == 1 ? 'x' : '-');
    group->broadcast(text.data(), text.size(), 1);
    CHECK(text == "xxxxx");
    group->barrier();
    if (without < 0 || gpu) {
      GpuBuffer device(*gpu);
      auto* const on_gpu = reinterpret_cast<float*>(device.reserve(4));
      *on_gpu = 2;
      group->all_reduce(on_gpu, DataType::float32, 1);
      CHECK(*on_gpu == 2.0f * 3);
      sum(on_gpu, 1);
      CHECK(*on_gpu == 18);
    } else {
      float two = 2;
      group->all_reduce(&two, DataType::float32, 1);
      sum(&two, 1);
    }
    CHECK(vote == 9);
    exchange(rank, "");
    group->abort();
    CHECK_THROWS_AS(group->barrier(), GroupBroken);
  });
  CHECK((fake_gpu::count_of("ncclAllReduce") > 0) == over_nccl);
}

}  // namespace

TEST_CASE("a world whose ranks all have a GPU uses NCCL") { check_world(-1, true); }

TEST_CASE("a rank without a GPU makes its world use Gloo") {
  check_world(0, false);
  check_world(2, false);
}

TEST_CASE("a group of auto cannot be used before it is connected") {
  const std::shared_ptr<Gpu> none;
  const auto plane = make_auto_plane(make_gloo_plane({}), nullptr, &none);
  CHECK_THROWS_AS(plane->create({.rank = 0, .size = 2})->barrier(), GroupBroken);
}
