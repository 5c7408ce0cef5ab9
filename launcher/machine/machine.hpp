// What we can find out about the machine we run on: its names, its user, its GPUs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/hosts/hosts.hpp"
#include "launcher/machine/gpus.hpp"

namespace elasticrun::launcher::machine {

struct Machine {
  hosts::OwnNames own;
  int gpus = 0;     // number of NVIDIA GPUs that the job may use
  std::string cwd;  // the caller's working directory
};

// Not pure: asks the kernel, but never a name server, so that it cannot hang.
Machine this_machine();

// The environment of this process, as NAME=VALUE.
std::vector<std::string> own_environment();

// The GPUs of this machine that a job may use, by slot. `root` is the directory above /dev and
// /proc.
std::vector<Gpu> own_gpus(const std::string& root = "/");

// Whether the GPU is still known to its driver and answers on the bus. True where we cannot know.
bool answers(const Gpu& gpu, const std::string& root = "/");

}  // namespace elasticrun::launcher::machine
