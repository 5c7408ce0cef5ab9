// The environment of a worker: the variables that torchrun would set, those that we add, and those
// of the caller that are passed on.
//
// Programs written for torchrun must find the same names with the same meaning. The caller's
// variables are passed on because programs depend on them (PATH, PYTHONPATH, NCCL_DEBUG). Variables
// that describe the caller's machine are not passed to other machines. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "launcher/hosts/place.hpp"

namespace elasticrun::launcher::machine {

// A variable that is not passed on, and why. A name that ends in '*' is a prefix.
struct DeniedVariable {
  std::string_view name;
  std::string_view reason;
};
std::span<const DeniedVariable> denied_on_other_machines();

struct EnvironmentRules {
  bool none = false;  // --no-env: pass nothing but `extra`
  std::vector<std::string>
      extra;  // -x: NAME=VALUE, or NAME for the caller's value; overrides the deny list
};

// Whether -x names that variable. If it does, the user decides its value and we do not set it.
bool names(const EnvironmentRules& rules, std::string_view variable);

// The caller's variables (NAME=VALUE) that a worker gets, each name once. `same_machine`: the
// worker runs on the caller's machine. An error reports an -x entry without a name, or one for a
// variable that the caller does not have.
Result<std::vector<std::string>> passed_environment(std::span<const std::string> caller,
                                                    const EnvironmentRules& rules,
                                                    bool same_machine);

// `env` with the variables of the account (HOME and the like) and of the GPUs added where `env`
// lacks them. `there` is the environment on the worker's machine, from which they come.
std::vector<std::string> with_account(std::vector<std::string> env,
                                      std::span<const std::string> there);

// The facts for a worker's environment that only the agent on its host knows.
struct HostFacts {
  std::string socket;  // path of the agent's socket
  WorkerId worker;
  std::string address;     // where workers on other hosts reach this one
  std::string interface;   // network interface with that address; empty: not known
  std::string error_file;  // where the worker may write why it failed
  int progress_fd = -1;    // its descriptor for lines about its progress
};

// `env` with these facts, which replace values that it has already. NCCL_SOCKET_IFNAME is set to
// exactly that interface unless the caller has set it: otherwise NCCL uses the first one it finds.
std::vector<std::string> with_host(std::vector<std::string> env, const HostFacts& facts);

// The facts about the job that go into a worker's environment.
struct JobFacts {
  std::string job_id;
  std::string host_name;  // the worker's host
  std::string master_address;
  int master_port = 0;
  int restart_count = 0;  // restarts of a plain program
  int max_restarts = 0;
  Generation generation;          // generation of the world that the place belongs to
  std::int64_t max_batch = 0;     // 0: not given
  std::vector<std::string> gpus;  // GPUs of the host, as visible_gpus() takes them
  bool one_gpu_visible = false;   // the worker sees only its own GPU
  std::string backend = {};       // backend of the data plane; empty: not given
};

// The environment of the worker in that place: `passed`, overridden by our variables.
std::vector<std::string> worker_environment(const hosts::Place& place, const JobFacts& facts,
                                            std::span<const std::string> passed);

}  // namespace elasticrun::launcher::machine
