// The data plane between GPUs: NCCL. No type of NCCL's shows here.
#pragma once

#include <memory>

#include "worker/collective/group.hpp"
#include "worker/gpu/gpu.hpp"
#include "worker/gpu/nccl_communicator.hpp"

namespace elasticrun::worker::gpu {

// Memory of collectives may be the host's or the GPU's, each call's in one place; the host's is
// carried through a buffer on the GPU. Collectives run on the program's stream and have ended when
// the call returns. Messages go in rounds: they are one kernel on the GPU, and the next one begins
// when it has ended.
std::unique_ptr<collective::DataPlane> make_nccl_plane(std::shared_ptr<Gpu> gpu,
                                                       const NcclLimits& limits = {});

}  // namespace elasticrun::worker::gpu
