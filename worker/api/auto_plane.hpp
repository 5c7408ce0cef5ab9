// --backend auto: NCCL when every rank of a world can, else Gloo; decided anew in each world.
//
// Each rank publishes its addresses for Gloo and, where it has a GPU, its offer for NCCL. All read
// the same, so all take the same; a host without a GPU that joins moves the job to Gloo, and its
// going moves it back.
#pragma once

#include <memory>

#include "worker/collective/group.hpp"
#include "worker/gpu/gpu.hpp"

namespace elasticrun::worker::api {

// `nccl` may be null: this rank has none. Over Gloo, memory of `*gpu` is carried through the host;
// it outlives the plane, and counts for a group as it is when that is made: null is none.
std::unique_ptr<collective::DataPlane> make_auto_plane(std::unique_ptr<collective::DataPlane> gloo,
                                                       std::unique_ptr<collective::DataPlane> nccl,
                                                       const std::shared_ptr<gpu::Gpu>* gpu);

}  // namespace elasticrun::worker::api
