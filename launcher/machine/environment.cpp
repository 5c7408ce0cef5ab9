// Merges environments in a map ordered by name: each name occurs once, and the order is the same
// everywhere.
#include "launcher/machine/environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "launcher/hosts/allocation.hpp"
#include "launcher/machine/gpus.hpp"

namespace elasticrun::launcher::machine {
namespace {

using hosts::Variables;

constexpr DeniedVariable host_specific[] = {
    {"HOSTNAME", "the name of this machine"},
    {"HOST", "the name of this machine"},
    {"HOSTTYPE", "the shell's idea of this machine"},
    {"MACHTYPE", "the shell's idea of this machine"},
    {"HOME", "the account's on that machine"},
    {"USER", "the account's on that machine"},
    {"LOGNAME", "the account's on that machine"},
    {"SHELL", "the account's on that machine"},
    {"MAIL", "the account's on that machine"},
    {"PWD", "the working directory is set for itself"},
    {"OLDPWD", "the working directory is set for itself"},
    {"SHLVL", "of the caller's shell"},
    {"_", "of the caller's shell"},
    {"SSH_*", "the caller's login: sockets and addresses of this machine"},
    {"GPG_*", "the caller's login: sockets and terminals of this machine"},
    {"DBUS_*", "the caller's login: sockets of this machine"},
    {"XDG_RUNTIME_DIR", "a folder of the caller's login"},
    {"XDG_SESSION_*", "the caller's login"},
    {"XDG_SEAT*", "the caller's login"},
    {"XDG_VTNR", "the caller's login"},
    {"DISPLAY", "the caller's screen"},
    {"WAYLAND_DISPLAY", "the caller's screen"},
    {"XAUTHORITY", "the caller's screen"},
    {"WINDOWID", "the caller's screen"},
    {"TMUX*", "the caller's terminal"},
    {"STY", "the caller's terminal"},
    {"TTY", "the caller's terminal"},
    {"TMPDIR", "may not exist on that machine"},
    {"TMP", "may not exist on that machine"},
    {"TEMP", "may not exist on that machine"},
    {"CUDA_VISIBLE_DEVICES", "numbers GPUs of this machine"},
    {"NVIDIA_VISIBLE_DEVICES", "numbers GPUs of this machine"},
    {"SLURMD_NODENAME", "the name of this machine"},
    {"SLURM_NODEID", "the place of this machine in the allocation"},
    {"SLURM_TOPOLOGY_ADDR*", "the place of this machine in the network"},
};

// Slurm's description of the caller, its batch script, say. A worker that took it for its own would
// hold itself for the first of all tasks, and so would all workers of that node.
constexpr std::string_view task_specific[] = {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_GTIDS",
                                              "SLURM_TASK_PID"};

bool matches(std::string_view name, std::string_view pattern) {
  if (!pattern.ends_with('*')) return name == pattern;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

bool denied(std::string_view name, bool same_machine) {
  // These configure this command, or describe the worker that called it. A command inside one of
  // our workers must not take them as meant for itself.
  if (name.starts_with("ELASTICRUN_") || name.starts_with("TORCHELASTIC_")) return true;
  if (std::ranges::find(task_specific, name) != std::end(task_specific)) return true;
  if (same_machine) return false;
  return std::ranges::any_of(host_specific,
                             [&](const auto& one) { return matches(name, one.name); });
}

// The variables by name. Entries without '=' or without a name are ignored; of two equal names the
// first counts, as for getenv.
Variables to_map(std::span<const std::string> entries) {
  Variables variables;
  for (const std::string& entry : entries) {
    const auto equal = entry.find('=');
    if (equal == std::string::npos || equal == 0) continue;
    variables.emplace(entry.substr(0, equal), entry.substr(equal + 1));
  }
  return variables;
}

std::vector<std::string> to_entries(const Variables& variables) {
  std::vector<std::string> entries;
  entries.reserve(variables.size());
  for (const auto& [name, value] : variables) entries.push_back(name + '=' + value);
  return entries;
}

}  // namespace

std::span<const DeniedVariable> denied_on_other_machines() { return host_specific; }

bool names(const EnvironmentRules& rules, std::string_view variable) {
  return std::ranges::any_of(rules.extra, [&](std::string_view extra) {
    return extra.substr(0, extra.find('=')) == variable;
  });
}

Result<std::vector<std::string>> passed_environment(std::span<const std::string> caller,
                                                    const EnvironmentRules& rules,
                                                    bool same_machine) {
  const Variables all = to_map(caller);
  Variables passed;
  if (!rules.none)
    for (const auto& [name, value] : all)
      if (!denied(name, same_machine)) passed.emplace(name, value);
  for (const std::string& extra : rules.extra) {
    const auto equal = extra.find('=');
    if (equal == 0 || extra.empty())
      return Error{fmt::format("-x {}: there is no name; write -x NAME=VALUE", extra)};
    if (equal != std::string::npos) {
      passed[extra.substr(0, equal)] = extra.substr(equal + 1);
    } else if (const auto found = all.find(extra); found != all.end()) {
      passed[extra] = found->second;
    } else {
      return Error{
          fmt::format("-x {0}: {0} is not set here; set it, or write -x {0}=VALUE", extra)};
    }
  }
  return to_entries(passed);
}

std::vector<std::string> with_account(std::vector<std::string> env,
                                      std::span<const std::string> there) {
  Variables all = to_map(env);
  const Variables own = to_map(there);
  for (const char* name : {"HOME", "USER", "LOGNAME", "SHELL", "PATH", "TMPDIR", "XDG_RUNTIME_DIR",
                           "TZ", "LANG", "CUDA_VISIBLE_DEVICES"})
    if (const auto found = own.find(name); found != own.end()) all.emplace(name, found->second);
  return to_entries(all);
}

std::vector<std::string> with_host(std::vector<std::string> env, const HostFacts& facts) {
  Variables all = to_map(env);
  all["ELASTICRUN_SOCKET"] = facts.socket;
  all["ELASTICRUN_WORKER"] = fmt::format("{}", facts.worker.value);
  all["ELASTICRUN_ADDRESS"] = facts.address;
  all["ELASTICRUN_PROGRESS_FD"] = fmt::format("{}", facts.progress_fd);
  all["TORCHELASTIC_ERROR_FILE"] = facts.error_file;
  if (!facts.interface.empty()) all.emplace("NCCL_SOCKET_IFNAME", "=" + facts.interface);
  return to_entries(all);
}

std::vector<std::string> worker_environment(const hosts::Place& place, const JobFacts& facts,
                                            std::span<const std::string> passed) {
  Variables all = to_map(passed);
  // Otherwise each of several workers would start a thread per core, and they would starve each
  // other. torchrun does the same.
  if (place.local_size() > 1) all.emplace("OMP_NUM_THREADS", "1");
  // A collective of NCCL that fails must end the worker and not let it wait for ever, as torchrun
  // has it.
  all.emplace("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  const auto set = [&](const char* name, const auto& value) {
    all[name] = fmt::format("{}", value);
  };
  set("RANK", place.rank.value);
  set("LOCAL_RANK", place.local_rank());
  set("WORLD_SIZE", place.size);
  set("LOCAL_WORLD_SIZE", place.local_size());
  set("GROUP_RANK", place.group_rank);
  set("GROUP_WORLD_SIZE", place.groups);
  set("ROLE_RANK", place.rank.value);
  set("ROLE_WORLD_SIZE", place.size);
  set("ROLE_NAME", "default");
  set("MASTER_ADDR", facts.master_address);
  set("MASTER_PORT", facts.master_port);
  set("TORCHELASTIC_RUN_ID", facts.job_id);
  set("TORCHELASTIC_RESTART_COUNT", facts.restart_count);
  set("TORCHELASTIC_MAX_RESTARTS", facts.max_restarts);
  set("ELASTICRUN_JOB_ID", facts.job_id);
  set("ELASTICRUN_HOST", facts.host_name);
  set("ELASTICRUN_SLOT", place.slot);
  set("ELASTICRUN_GENERATION", facts.generation.value);
  if (!facts.backend.empty()) set("ELASTICRUN_BACKEND", facts.backend);
  if (facts.max_batch > 0) set("ELASTICRUN_MAX_BATCH", facts.max_batch);
  if (const auto visible = visible_gpus(place, facts.gpus, facts.one_gpu_visible))
    set("CUDA_VISIBLE_DEVICES", *visible);
  if (const std::string own = visible_gpus(place, facts.gpus, true).value_or(""); !own.empty())
    set("ELASTICRUN_GPU", own);
  return to_entries(all);
}

}  // namespace elasticrun::launcher::machine
