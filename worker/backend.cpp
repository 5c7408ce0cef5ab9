#include "worker/backend.hpp"

#include <utility>

#include "worker/auto_plane.hpp"
#include "worker/gloo_group.hpp"
#include "worker/nccl_group.hpp"

namespace elasticrun::worker {

Result<Backend> make_backend(const BackendOptions& options) {
  GlooOptions gloo;
  if (!options.address.empty()) gloo.address = options.address;
  const bool may_be_nccl = options.backend == "nccl" || options.backend == "auto";
  if (!may_be_nccl) return Backend{make_gloo_plane(gloo), nullptr};
  auto gpu = Gpu::open(options.host, options.local_rank);
  if (!gpu && options.backend == "nccl") return gpu.error();
  Backend backend;
  if (gpu) {
    backend.gpu = *gpu;
    backend.plane = make_nccl_plane(*gpu);
  }
  if (options.backend == "auto")
    backend.plane = make_auto_plane(make_gloo_plane(gloo), std::move(backend.plane), backend.gpu);
  return backend;
}

}  // namespace elasticrun::worker
