// The GPUs of a host: which GPU belongs to which slot, and which GPUs a worker sees. Pure.
//
// The kernel's files describe the GPUs: the device nodes show which ones we may use, and the files
// under /proc/driver/nvidia/gpus where each of them is on the bus. Why not NVML: the agent is a
// static binary, and dlopen from one needs at run time the very glibc that it was linked with;
// loading NVML also takes 0.1 s, and wakes GPUs that sleep. nvidia-smi does the same, slower.
//
// A GPU is named by its UUID wherever that is known. Numbers shift when a GPU is lost, and CUDA
// numbers GPUs by speed, not by bus location, unless CUDA_DEVICE_ORDER says otherwise.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/hosts/place.hpp"

namespace elasticrun::launcher::machine {

struct Gpu {
  std::string name;      // as in CUDA_VISIBLE_DEVICES: a UUID or a number
  std::string location;  // on the PCI bus, "0000:3b:00.0"; empty: not known

  bool operator==(const Gpu&) const = default;
};

// The GPUs a job may use, in the order of its slots: by bus location, or those in `visible`, in its
// order, so that an existing restriction is kept. `visible` is CUDA_VISIBLE_DEVICES, or null if it
// is not set. `device_names` are the entries of /dev, `informations` the text of each GPU's file
// under /proc/driver/nvidia/gpus.
std::vector<Gpu> find_gpus(const std::vector<std::string>& device_names,
                           const std::vector<std::string>& informations, const char* visible);

// The value of CUDA_VISIBLE_DEVICES for a worker. `gpus` are the names of its host's GPUs by slot;
// the name of a lost GPU is empty. The GPUs of the world's slots on the host come first, in slot
// order, so that LOCAL_RANK indexes them; the other GPUs follow. `own_alone`: only the worker's own
// GPU. nullopt where the host has no GPUs: the variable then stays as it is.
std::optional<std::string> visible_gpus(const hosts::Place& place,
                                        std::span<const std::string> gpus, bool own_alone);

}  // namespace elasticrun::launcher::machine
