// See machine_kind.hpp.
#include "worker/state/machine_kind.hpp"

#include <xxhash.h>

#include <fstream>
#include <string>

namespace elasticrun::worker::state {

std::uint64_t kind_of_machine(const gpu::Gpu* gpu) {
  std::string kind = gpu ? gpu->model() : "";
  std::ifstream processors("/proc/cpuinfo");
  for (std::string line; std::getline(processors, line);)
    if (line.starts_with("model name") || line.starts_with("CPU part")) {
      kind += line;
      break;
    }
  return XXH3_64bits(kind.data(), kind.size());
}

}  // namespace elasticrun::worker::state
