// The data plane of this worker, as --backend asks and the machine allows.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "worker/gpu.hpp"
#include "worker/group.hpp"

namespace elasticrun::worker {

struct BackendOptions {
  std::string backend;  // gloo, nccl or auto; empty: gloo
  std::string host;     // for messages to people
  std::string address;  // of this machine for others; empty: not said
  int local_rank = 0;
};

struct Backend {
  std::unique_ptr<DataPlane> plane;
  std::shared_ptr<Gpu> gpu;  // null: none is used
};

// An error says what nccl lacks here.
Result<Backend> make_backend(const BackendOptions& options);

}  // namespace elasticrun::worker
