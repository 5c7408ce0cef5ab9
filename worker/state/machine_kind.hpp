// The kind of this machine, to compare with others: machines of different kinds compute the same
// numbers with different last bits. A driver: it reads /proc/cpuinfo.
#pragma once

#include <cstdint>

#include "worker/gpu/gpu.hpp"

namespace elasticrun::worker::state {

// A hash of the models of the processor and the GPU; `gpu` is null when this worker uses none.
std::uint64_t kind_of_machine(const gpu::Gpu* gpu);

}  // namespace elasticrun::worker::state
