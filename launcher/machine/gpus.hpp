// The GPUs of a host: which of them its slots stand for, and which of them a worker sees. Pure.
//
// The kernel's files tell what is there: the device nodes which GPUs we may use, the files under
// /proc/driver/nvidia/gpus where on the bus each of them is. Why not NVML: the agent is a static
// binary, and dlopen from one needs at run time the very glibc that it was linked with; loading
// NVML also takes a tenth of a second, and wakes GPUs that sleep. nvidia-smi does the same, slower.
//
// A GPU is named by its UUID wherever that is known. Numbers shift when a GPU is lost, and CUDA
// numbers by speed, not by place, unless it is told otherwise.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/hosts/place.hpp"

namespace elasticrun::launcher::machine {

struct Gpu {
  std::string name;      // as CUDA_VISIBLE_DEVICES has it
  std::string location;  // on the PCI bus, "0000:3b:00.0"; empty: not known

  bool operator==(const Gpu&) const = default;
};

// The GPUs a job may use, in the order of its slots: by place on the bus, or as `visible` lists
// them, which is CUDA_VISIBLE_DEVICES or null; what was narrowed already stays narrow.
// `device_names` are the entries of /dev, `informations` what the driver's files tell, one each.
std::vector<Gpu> find_gpus(const std::vector<std::string>& device_names,
                           const std::vector<std::string>& informations, const char* visible);

// CUDA_VISIBLE_DEVICES of a worker whose host has these GPUs: their names by slot, an empty one
// has been lost. First come those of the world's slots there, in their order, so that LOCAL_RANK
// indexes them; then the others. `own_alone`: none but the worker's own. Nothing where
// the host has no GPUs: then the variable stays as it is.
std::optional<std::string> visible_gpus(const hosts::Place& place,
                                        std::span<const std::string> gpus, bool own_alone);

}  // namespace elasticrun::launcher::machine
