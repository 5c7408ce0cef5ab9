// See backend.hpp.
#include "worker/api/backend.hpp"

#include <utility>

#include "worker/api/auto_plane.hpp"
#include "worker/collective/gloo_group.hpp"
#include "worker/gpu/nccl_group.hpp"

namespace elasticrun::worker::api {

Result<std::unique_ptr<collective::DataPlane>> make_plane(const BackendOptions& options,
                                                          std::shared_ptr<gpu::Gpu>& gpu) {
  std::unique_ptr<collective::DataPlane> nccl;
  if (options.backend == "nccl" || (options.backend == "auto" && options.has_gpu)) {
    auto opened = gpu::Gpu::open(options.host, options.local_rank);
    const Result<void> usable = opened ? (*opened)->nccl_usable() : opened.error();
    if (!usable && options.backend == "nccl") return usable.error();
    if (opened) gpu = std::move(*opened);
    if (usable) nccl = gpu::make_nccl_plane(gpu);
    if (options.backend == "nccl") return nccl;
  }
  collective::GlooOptions gloo;
  if (!options.address.empty()) gloo.address = options.address;
  return make_auto_plane(collective::make_gloo_plane(gloo), std::move(nccl), &gpu);
}

}  // namespace elasticrun::worker::api
