// The environment of a worker: what torchrun would set, what we add, and what of the caller's goes
// along.
//
// Programs written for torchrun must find the same names with the same meaning. The caller's own
// variables are passed because programs depend on them (PATH, PYTHONPATH, NCCL_DEBUG); to another
// machine those that describe this one are not. Pure.
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

// A variable that is not passed on, and why; a '*' at the end stands for any rest.
struct DeniedVariable {
  std::string_view name;
  std::string_view reason;
};
std::span<const DeniedVariable> denied_on_other_machines();

struct EnvironmentRules {
  bool none = false;  // --no-env: nothing but `extra`
  std::vector<std::string>
      extra;  // -x: NAME=VALUE, or NAME for the caller's value; beats the deny list
};

// Whether -x names that variable, so that it is the caller's own affair.
bool names(const EnvironmentRules& rules, std::string_view variable);

// The caller's variables (NAME=VALUE) that a worker gets, each name once. `same_machine`: the
// worker runs where the caller is. An error names an extra variable that the caller does not have.
Result<std::vector<std::string>> passed_environment(std::span<const std::string> caller,
                                                    const EnvironmentRules& rules,
                                                    bool same_machine);

// `env` with what it lacks of the account on the machine where the worker runs (HOME and the like),
// and of the GPUs there, from the environment there.
std::vector<std::string> with_account(std::vector<std::string> env,
                                      std::span<const std::string> there);

// What only the agent of its host can tell a worker.
struct HostFacts {
  std::string socket;  // of the agent
  WorkerId worker;
  std::string address;    // where workers of other hosts reach this one
  std::string interface;  // that has the address; empty: not known
};

// `env` with these facts instead of any that it says already. NCCL is told the interface, exactly
// and with its own variable, unless the caller has chosen one: else it takes the first it finds.
std::vector<std::string> with_host(std::vector<std::string> env, const HostFacts& facts);

// What a worker is told of its job.
struct JobFacts {
  std::string job_id;
  std::string host_name;  // of the worker
  std::string master_address;
  int master_port = 0;
  int restart_count = 0;  // of a plain program
  int max_restarts = 0;
  Generation generation;          // of the world described
  std::int64_t max_batch = 0;     // 0: not said
  std::vector<std::string> gpus;  // of its host, as visible_gpus() takes them
  bool one_gpu_visible = false;
  std::string backend = {};  // of the data plane
};

// The complete environment of the worker in that place: `passed`, and ours over it.
std::vector<std::string> worker_environment(const hosts::Place& place, const JobFacts& facts,
                                            std::span<const std::string> passed);

}  // namespace elasticrun::launcher::machine
