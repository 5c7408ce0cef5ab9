// --backend auto: NCCL when every rank of a world can, else Gloo; decided anew in each world.
//
// Each rank publishes its addresses for Gloo and, where it has a GPU, its offer for NCCL. All read
// the same, so all take the same; a host without a GPU that joins moves the job to Gloo, and its
// going moves it back.
#pragma once

#include <memory>

#include "worker/gpu.hpp"
#include "worker/group.hpp"

namespace elasticrun::worker {

// `nccl` and `gpu` may be null: this rank has none. Over Gloo, memory of the GPU is carried through
// the host.
std::unique_ptr<DataPlane> make_auto_plane(std::unique_ptr<DataPlane> gloo,
                                           std::unique_ptr<DataPlane> nccl,
                                           std::shared_ptr<const Gpu> gpu);

}  // namespace elasticrun::worker
