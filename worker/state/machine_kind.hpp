// What kind of machine this is, to compare with others: machines of different kinds compute the
// same with different last bits. A driver: it reads /proc/cpuinfo.
#pragma once

#include <cstdint>

#include "worker/gpu/gpu.hpp"

namespace elasticrun::worker::state {

// A hash of the processor's model and the GPU's; null: it uses none.
std::uint64_t kind_of_machine(const gpu::Gpu* gpu);

}  // namespace elasticrun::worker::state
