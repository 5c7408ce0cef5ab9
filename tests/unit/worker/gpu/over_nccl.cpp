// Runs the tests of the state transfer and of the reduction over NCCL, with gradients on the GPU.
#include "tests/unit/worker/gpu/gpu_ranks.hpp"

namespace elasticrun::worker::testing {
namespace {

[[maybe_unused]] const bool over_nccl = [] {
  usual_planes = nccl_planes();
  return true;
}();

}  // namespace
}  // namespace elasticrun::worker::testing
