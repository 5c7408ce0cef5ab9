// The data plane between GPUs: NCCL. No type of NCCL's shows here.
#pragma once

#include <memory>

#include "worker/collective/group.hpp"
#include "worker/gpu/gpu.hpp"
#include "worker/gpu/nccl_communicator.hpp"

namespace elasticrun::worker::gpu {

// Memory of collectives may be on the host or on the GPU, for each call in one place; host memory
// is copied through a buffer on the GPU. Collectives run on the program's stream and have ended
// when the call returns. Messages go in rounds (Group::in_rounds): all messages of a round are one
// kernel on the GPU, and the next round begins when it has ended.
std::unique_ptr<collective::DataPlane> make_nccl_plane(std::shared_ptr<Gpu> gpu,
                                                       const NcclLimits& limits = {});

}  // namespace elasticrun::worker::gpu
