// Makes the data plane of this worker, as --backend asks and the machine allows.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "worker/collective/group.hpp"
#include "worker/gpu/gpu.hpp"

namespace elasticrun::worker::api {

struct BackendOptions {
  std::string backend;  // gloo, nccl or auto; empty: gloo
  std::string host;     // name of this host, for message texts
  std::string address;  // IP address of this machine for other machines; empty: not set
  int local_rank = 0;
  bool has_gpu = false;  // this slot stands for a GPU, so auto may use nccl
};

// An error says why nccl cannot be used here. `gpu` is set to the GPU that nccl or auto will use;
// otherwise it stays null until the program is found to use one, at the latest when it trains. It
// outlives the plane.
Result<std::unique_ptr<collective::DataPlane>> make_plane(const BackendOptions& options,
                                                          std::shared_ptr<gpu::Gpu>& gpu);

}  // namespace elasticrun::worker::api
