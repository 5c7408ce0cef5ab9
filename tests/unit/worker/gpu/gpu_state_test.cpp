// State on GPUs reaches newcomers, from and to either kind of memory.
#include <cstring>

#include "tests/unit/worker/gpu/gpu_ranks.hpp"
#include "worker/api/auto_plane.hpp"
#include "worker/state/state_transfer.hpp"

using namespace elasticrun;
using namespace elasticrun::worker::collective;
using namespace elasticrun::worker::gpu;
using namespace elasticrun::worker::state;
using namespace elasticrun::worker::api;
using namespace elasticrun::worker::testing;

namespace {

// Small pieces are in host memory everywhere, as an optimizer's counters are.
constexpr std::size_t small = 8;

// Pieces of state, on the GPU if there is one.
class Pieces {
 public:
  Pieces(std::shared_ptr<Gpu> gpu, const std::vector<std::size_t>& sizes, int seed)
      : host_(sizes.size()) {
    if (gpu) table.use_gpu(gpu);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      std::byte* memory = nullptr;
      if (gpu && sizes[i] > small) {
        device_.push_back(std::make_unique<GpuBuffer>(*gpu));
        memory = device_.back()->reserve(sizes[i]);
      } else {
        host_[i].resize(sizes[i]);
        memory = host_[i].data();
      }
      places_.push_back({memory, sizes[i]});
      for (std::size_t k = 0; k < sizes[i]; ++k)
        memory[k] = static_cast<std::byte>(k * 31 + k / 4096 + i + static_cast<std::size_t>(seed));
      REQUIRE(table.add_state("piece " + std::to_string(i), memory, sizes[i]).has_value());
    }
    table.seal();
  }
  std::vector<std::vector<std::byte>> content() const {
    std::vector<std::vector<std::byte>> all;
    for (const Segment& place : places_) all.emplace_back(place.data, place.data + place.bytes);
    return all;
  }
  StateTable table;

 private:
  std::vector<Segment> places_;
  std::vector<std::vector<std::byte>> host_;
  std::vector<std::unique_ptr<GpuBuffer>> device_;
};

// Rank `without` has no GPU, so the world uses Gloo; -1: all have one.
void check_transfer(const std::vector<bool>& holds, const std::vector<std::size_t>& sizes,
                    int without, bool keep) {
  const CleanGpu clean;
  run_planes(static_cast<int>(holds.size()), [&](int rank, DataPlane&, Exchange& exchange) {
    const auto gpu = rank == without ? nullptr : open_fake_gpu();
    const auto plane = make_auto_plane(make_gloo_plane({}),
                                       gpu ? make_nccl_plane(gpu, test_limits) : nullptr, &gpu);
    const auto group = form(*plane, exchange, rank, static_cast<int>(holds.size()));
    const bool holder = holds[static_cast<std::size_t>(rank)];
    Pieces pieces(gpu, sizes, holder ? 5 : 50 + rank);
    const auto before = pieces.content();
    StateTransfer transfer(*group, holds, pieces.table);
    std::string progress = holder ? "step 3" : "";
    transfer.exchange(progress, keep);
    if (keep) CHECK(pieces.content() == before);
    if (const Carried carried = transfer.commit(); !carried.progress.empty())
      progress = carried.progress;
    CHECK(progress == "step 3");
    CHECK(pieces.content() == Pieces(nullptr, sizes, 5).content());
    exchange(rank, "");
  });
}

constexpr std::size_t m = 1u << 20;

}  // namespace

TEST_CASE("state on GPUs arrives complete, whether received beside or in place") {
  for (const bool keep : {false, true})
    for (const int without : {-1, 0, 2}) {
      CAPTURE(keep);
      CAPTURE(without);
      check_transfer({true, false, false}, {5 * m + 3, 17, 2 * m}, without, keep);
      check_transfer({true, true, false}, {3 * m, 4 * m + 1}, without, keep);
      check_transfer({true, false, false}, {small, m / 8, small, m / 4, m / 8, small}, without,
                     keep);
    }
}

TEST_CASE("numbers in mixed memories or on another GPU are refused") {
  const CleanGpu clean;
  const auto gpu = open_fake_gpu();
  const auto other = Gpu::open("n1", 3, {.cuda = FAKE_GPU, .nccl = FAKE_GPU});
  GpuBuffer here(*gpu), there(**other);
  float host[16] = {};
  std::byte* const on_gpu = here.reserve(64);
  StateTable table;
  table.use_gpu(gpu);
  CHECK(table.add_state("s", on_gpu, 64).has_value());
  CHECK(table.add_state("h", host, sizeof host).has_value());
  CHECK(table.add_gradients("none", nullptr, DataType::float32, 0).has_value());
  CHECK(table.add_gradients("g", on_gpu, DataType::float32, 16).has_value());
  const auto mixed = table.add_buffers("b", host, DataType::float32, 16);
  REQUIRE_FALSE(mixed.has_value());
  CHECK(
      mixed.error().text ==
      "buffers 'b': the GPU and the host are mixed; all gradients and buffers lie on one of them");
  const auto foreign = table.add_state("f", there.reserve(64), 64);
  REQUIRE_FALSE(foreign.has_value());
  CHECK(foreign.error().text ==
        "state 'f': lies on GPU 3, but this worker uses GPU 0; choose the GPU by LOCAL_RANK before "
        "it is allocated");
}

TEST_CASE("a GPU is found by an address in its memory") {
  const CleanGpu clean;
  const GpuLibraryNames fakes{.cuda = FAKE_GPU, .nccl = FAKE_GPU};
  const auto third = Gpu::open("n1", 3, fakes);
  GpuBuffer memory(**third);
  float host = 0;
  CHECK(Gpu::holding(&host, "n1", fakes) == nullptr);
  CHECK(Gpu::holding(memory.reserve(8), "n1", {.cuda = "libno-such-cuda.so.1"}) == nullptr);
  const auto found = Gpu::holding(memory.reserve(8), "n1", fakes);
  REQUIRE(found);
  CHECK(found->ordinal() == 3);
}

TEST_CASE("the committed copy of buffers on the GPU is on the GPU") {
  const CleanGpu clean;
  own_gpu = open_fake_gpu();
  {
    Numbers<double> buffer(3);
    buffer[1] = 2;
    StateTable table;
    table.use_gpu(own_gpu);
    REQUIRE(table.add_buffers("b", buffer.data(), DataType::float64, 3).has_value());
    table.seal();
    own_gpu->wait();
    REQUIRE(table.segments().size() == 1);
    CHECK(table.segments()[0].on_gpu);
    CHECK(own_gpu->holds(table.segments()[0].data));
    buffer[1] = 20;
    table.restore_buffers();
    own_gpu->wait();
    CHECK(buffer[1] == 2);
    buffer[1] = 21;
    table.commit_buffers();
    table.restore_buffers();
    own_gpu->wait();
    CHECK(buffer[1] == 21);
  }
  own_gpu.reset();
}

TEST_CASE("a GPU that fails under a kernel is lost, and the error says so") {
  CleanGpu clean;
  own_gpu = open_fake_gpu();
  {
    const auto arithmetic = make_gpu_arithmetic(own_gpu);
    Numbers<float> numbers(4);
    fake_gpu::plan("cuLaunchKernel", 1, fake_gpu::Trouble::fail);
    CHECK_THROWS_AS(arithmetic->scale({numbers.data(), DataType::float32},
                                      {numbers.data(), DataType::float32}, 4, 0.5),
                    GroupBroken);
    CHECK(own_gpu->health().error().text ==
          "the GPU of n1 failed: cuLaunchKernel: fake trouble (200)");
    clean.abandoned = fake_gpu::device_bytes() - clean.before;  // it might never come back
  }
  own_gpu.reset();
}
