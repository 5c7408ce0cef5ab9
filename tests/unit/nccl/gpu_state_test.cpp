// State that lies on GPUs reaches newcomers, from and to either kind of memory.
#include <cstring>

#include "gpu_ranks.hpp"
#include "worker/auto_plane.hpp"
#include "worker/state_transfer.hpp"

using namespace elasticrun;
using namespace elasticrun::worker;
using namespace elasticrun::worker::testing;

namespace {

// Pieces of state, on the GPU where there is one.
class Pieces {
 public:
  Pieces(std::shared_ptr<Gpu> gpu, const std::vector<std::size_t>& sizes, int seed)
      : host_(sizes.size()) {
    if (gpu) table.use_gpu(gpu);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      std::byte* memory = nullptr;
      if (gpu) {
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

// `without` has no GPU, so that the world meets over Gloo; -1: all have one.
void check_transfer(const std::vector<bool>& holds, const std::vector<std::size_t>& sizes,
                    int without, bool keep) {
  const CleanGpu clean;
  run_planes(static_cast<int>(holds.size()), [&](int rank, DataPlane&, Exchange& exchange) {
    const auto gpu = rank == without ? nullptr : open_fake_gpu();
    const auto plane = make_auto_plane(make_gloo_plane({}),
                                       gpu ? make_nccl_plane(gpu, test_limits) : nullptr, gpu);
    const auto group = form(*plane, exchange, rank, static_cast<int>(holds.size()));
    const bool holder = holds[static_cast<std::size_t>(rank)];
    Pieces pieces(gpu, sizes, holder ? 5 : 50 + rank);
    const auto before = pieces.content();
    StateTransfer transfer(*group, holds, pieces.table);
    std::string progress = holder ? "step 3" : "";
    transfer.exchange(progress, keep);
    if (keep) CHECK(pieces.content() == before);
    transfer.commit(progress);
    CHECK(progress == "step 3");
    CHECK(pieces.content() == Pieces(nullptr, sizes, 5).content());
    exchange(rank, "");
  });
}

constexpr std::size_t m = 1u << 20;

}  // namespace

TEST_CASE("state on GPUs arrives whole, kept beside or in place") {
  for (const bool keep : {false, true})
    for (const int without : {-1, 0, 2}) {
      CAPTURE(keep);
      CAPTURE(without);
      check_transfer({true, false, false}, {5 * m + 3, 17, 2 * m}, without, keep);
      check_transfer({true, true, false}, {3 * m, 4 * m + 1}, without, keep);
    }
}

TEST_CASE("gradients and buffers on the GPU are refused") {
  const CleanGpu clean;
  const auto gpu = open_fake_gpu();
  GpuBuffer memory(*gpu);
  StateTable table;
  table.use_gpu(gpu);
  const auto refused = table.add_gradients("g", memory.reserve(64), DataType::float32, 16);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().text ==
        "gradients 'g': lies on the GPU; reduce it with all_reduce in a loop of your own");
  CHECK_FALSE(table.add_buffers("b", memory.reserve(64), DataType::float32, 16).has_value());
  CHECK(table.add_state("s", memory.reserve(64), 64).has_value());
}
