// The data plane of this worker, as --backend asks and the machine allows.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "worker/collective/group.hpp"
#include "worker/gpu/gpu.hpp"

namespace elasticrun::worker::api {

struct BackendOptions {
  std::string backend;  // gloo, nccl or auto; empty: gloo
  std::string host;     // for messages to people
  std::string address;  // of this machine for others; empty: not said
  int local_rank = 0;
  bool has_gpu = false;  // the slot stands for one: then auto may take nccl
};

// An error says what nccl lacks here. `gpu` outlives the plane: the GPU that nccl or auto will use,
// and with gloo null, until the program is found to use one, which may be until it trains.
Result<std::unique_ptr<collective::DataPlane>> make_plane(const BackendOptions& options,
                                                          std::shared_ptr<gpu::Gpu>& gpu);

}  // namespace elasticrun::worker::api
