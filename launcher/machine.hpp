// What can be seen of the machine we run on: its names, its user, its GPUs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/hosts.hpp"

namespace elasticrun::launcher {

struct Machine {
  OwnNames own;
  int gpus = 0;     // NVIDIA devices that the job may use
  std::string cwd;  // the caller's working directory
};

// A driver: asks the kernel, never a name server, so that it cannot hang.
Machine this_machine();

// NAME=VALUE, as this program was started.
std::vector<std::string> own_environment();

// How many GPUs a job may use. `device_names` are the entries of /dev; `visible` is
// CUDA_VISIBLE_DEVICES or null: what the caller narrowed already stays narrow.
int count_gpus(const std::vector<std::string>& device_names, const char* visible);

}  // namespace elasticrun::launcher
