// --backend auto: NCCL when every rank of a world can use it, otherwise Gloo; decided again in each
// world.
//
// Each rank publishes its addresses for Gloo and, if it has a GPU, its offer for NCCL. All ranks
// read the same, so all choose the same; a host without a GPU that joins moves the job to Gloo, and
// when it leaves the job moves back.
#pragma once

#include <memory>

#include "worker/collective/group.hpp"
#include "worker/gpu/gpu.hpp"

namespace elasticrun::worker::api {

// `nccl` is null when this rank has none. Over Gloo, memory of `*gpu` is copied through the host;
// the pointer outlives the plane, and each group uses its value at the group's creation (null: no
// GPU).
std::unique_ptr<collective::DataPlane> make_auto_plane(std::unique_ptr<collective::DataPlane> gloo,
                                                       std::unique_ptr<collective::DataPlane> nccl,
                                                       const std::shared_ptr<gpu::Gpu>* gpu);

}  // namespace elasticrun::worker::api
