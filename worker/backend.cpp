#include "worker/backend.hpp"

#include <utility>

#include "worker/auto_plane.hpp"
#include "worker/gloo_group.hpp"
#include "worker/nccl_group.hpp"

namespace elasticrun::worker {

Result<std::unique_ptr<DataPlane>> make_plane(const BackendOptions& options,
                                              std::shared_ptr<Gpu>& gpu) {
  std::unique_ptr<DataPlane> nccl;
  if (options.backend == "nccl" || (options.backend == "auto" && options.has_gpu)) {
    auto opened = Gpu::open(options.host, options.local_rank);
    const std::string trouble = opened ? (*opened)->nccl_trouble() : opened.error().text;
    if (!trouble.empty() && options.backend == "nccl") return Error{trouble};
    if (opened) gpu = std::move(*opened);
    if (trouble.empty()) nccl = make_nccl_plane(gpu);
    if (options.backend == "nccl") return nccl;
  }
  GlooOptions gloo;
  if (!options.address.empty()) gloo.address = options.address;
  return make_auto_plane(make_gloo_plane(gloo), std::move(nccl), &gpu);
}

}  // namespace elasticrun::worker
