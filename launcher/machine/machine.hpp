// What can be seen of the machine we run on: its names, its user, its GPUs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/hosts/hosts.hpp"
#include "launcher/machine/gpus.hpp"

namespace elasticrun::launcher::machine {

struct Machine {
  hosts::OwnNames own;
  int gpus = 0;     // NVIDIA devices that the job may use
  std::string cwd;  // the caller's working directory
};

// A driver: asks the kernel, never a name server, so that it cannot hang.
Machine this_machine();

// NAME=VALUE, as this program was started.
std::vector<std::string> own_environment();

// The GPUs here that a job may use, by slot; `root` is where the kernel's files are.
std::vector<Gpu> own_gpus(const std::string& root = "/");

// The driver has it, and the bus does not answer for it as for nobody. True where we cannot know.
bool answers(const Gpu& gpu, const std::string& root = "/");

}  // namespace elasticrun::launcher::machine
