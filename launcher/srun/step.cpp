// See step.hpp.
#include "launcher/srun/step.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/numbers.hpp"
#include "launcher/hosts/host_line.hpp"

namespace elasticrun::launcher::srun {
namespace {

// Options that srun would take from the variables of the job, and that fit the job and not a step
// with one task on each node.
constexpr std::string_view not_for_steps[] = {"SLURM_NTASKS",
                                              "SLURM_NPROCS",
                                              "SLURM_NTASKS_PER_NODE",
                                              "SLURM_NTASKS_PER_CORE",
                                              "SLURM_NTASKS_PER_GPU",
                                              "SLURM_NTASKS_PER_SOCKET",
                                              "SLURM_NNODES",
                                              "SLURM_JOB_NUM_NODES",
                                              "SLURM_JOB_NODELIST",
                                              "SLURM_NODELIST",
                                              "SLURM_HOSTFILE",
                                              "SLURM_CONSTRAINT",
                                              "SLURM_CPUS_PER_TASK",
                                              "SLURM_CPUS_PER_GPU",
                                              "SLURM_GPUS",
                                              "SLURM_GPUS_PER_TASK",
                                              "SLURM_GPUS_PER_SOCKET",
                                              "SLURM_GPU_BIND",
                                              "SLURM_GPU_FREQ",
                                              "SLURM_GRES",
                                              "SLURM_STEP_GRES",
                                              "SLURM_TRES_PER_TASK",
                                              "SLURM_MEM_PER_CPU",
                                              "SLURM_MEM_PER_GPU",
                                              "SLURM_MEM_PER_NODE",
                                              "SLURM_CPU_BIND",
                                              "SLURM_MEM_BIND",
                                              "SLURM_DISTRIBUTION",
                                              "SLURM_EXACT",
                                              "SLURM_EXCLUSIVE",
                                              "SLURM_HINT",
                                              "SLURM_THREADS_PER_CORE",
                                              "SLURM_TASK_PROLOG",
                                              "SLURM_TASK_EPILOG",
                                              "SLURM_KILL_BAD_EXIT",
                                              "SLURM_WAIT",
                                              "SLURM_LABELIO",
                                              "SLURM_UNBUFFEREDIO",
                                              "SLURM_STDINMODE",
                                              "SLURM_STDOUTMODE",
                                              "SLURM_STDERRMODE",
                                              "SLURM_BCAST",
                                              "SLURM_SEND_LIBS",
                                              "SLURM_EXPORT_ENV",
                                              "SLURM_JOB_NAME",
                                              "SLURM_WORKING_DIR",
                                              "SLURM_REMOTE_CWD",
                                              "SLURM_RELATIVE",
                                              "SLURM_CLUSTERS",
                                              "SLURM_PROFILE",
                                              "SLURM_ACCTG_FREQ",
                                              "SLURM_RESV_PORTS",
                                              "SLURM_DEBUG",
                                              "SRUN_CPUS_PER_TASK",
                                              "SLURMD_DEBUG"};

std::vector<std::string> srun(const std::vector<std::string>& nodes, int component) {
  std::vector<std::string> words;
  for (const std::string_view name : not_for_steps) {
    words.emplace_back("-u");
    words.emplace_back(name);
  }
  const std::string count = std::to_string(nodes.size());
  for (const char* word : {"srun", "--overlap", "--kill-on-bad-exit=0", "--no-kill", "--wait=0",
                           "--mpi=none", "--ntasks-per-node=1", "--cpu-bind=none", "--export=ALL",
                           "--chdir=/", "--job-name=elasticrun"})
    words.emplace_back(word);
  if (component >= 0) words.push_back(fmt::format("--het-group={}", component));
  words.push_back("--nodes=" + count);
  words.push_back("--ntasks=" + count);
  words.push_back(fmt::format("--nodelist={}", fmt::join(nodes, ",")));
  return words;
}

}  // namespace

std::vector<std::string> node_names(std::string_view list) {
  std::vector<std::string> names;
  while (!list.empty()) {
    const std::size_t end = hosts::end_of_item(list);
    const auto some = hosts::expand_ranges(list.substr(0, end));
    if (!some) return {};
    for (const std::string& name : *some) {
      if (!hosts::check_name(name)) return {};
      names.push_back(name);
    }
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return names;
}

std::vector<std::string> start_arguments(const Step& step) {
  std::vector<std::string> words = srun(step.nodes, step.component);
  words.emplace_back("--label");
  if (step.wrap.empty()) {
    words.push_back("--bcast=" + step.copy);
  } else {
    words.emplace_back("/bin/sh");
    words.emplace_back("-c");
    words.push_back("exec " + step.wrap + " \"$0\" \"$@\"");
  }
  words.push_back(step.agent);
  words.emplace_back("--ready");
  words.push_back(step.mark);
  return words;
}

std::vector<std::string> script_arguments(const std::string& node, int component,
                                          const std::string& script) {
  std::vector<std::string> words = srun({node}, component);
  for (const std::string& word : {std::string("/bin/sh"), std::string("-c"), script})
    words.push_back(word);
  return words;
}

std::optional<TaskLine> task_line(std::string_view line) {
  const std::size_t colon = line.find(": ");
  std::string_view number = line.substr(0, std::min(colon, line.size()));
  // An empty line of a task may have lost its blank.
  if (colon == line.npos && line.ends_with(':')) number.remove_suffix(1);
  while (number.starts_with(' ')) number.remove_prefix(1);
  const auto task = whole_number(number);
  if (!task || *task < 0 || *task >= static_cast<std::int64_t>(hosts::hosts_max))
    return std::nullopt;
  return TaskLine{static_cast<int>(*task),
                  colon == line.npos ? std::string_view() : line.substr(colon + 2)};
}

std::optional<AgentThere> agent_there(std::string_view text, std::string_view mark) {
  if (mark.empty() || !text.starts_with(mark)) return std::nullopt;
  text.remove_prefix(mark.size());
  AgentThere there{.damaged = text.starts_with(" damaged 0 ")};
  if (!there.damaged && !text.starts_with(" ready 0 ")) return std::nullopt;
  const auto pid = whole_number(text.substr(text.rfind(' ') + 1));
  if (!pid || *pid <= 1 || *pid > 1 << 30) return std::nullopt;
  there.pid = static_cast<int>(*pid);
  return there;
}

std::optional<TasksEnded> tasks_ended(std::string_view line) {
  constexpr std::string_view begin = "srun: error: ";
  if (!line.starts_with(begin)) return std::nullopt;
  line.remove_prefix(begin.size());
  constexpr std::string_view failure = "Node failure on ";
  if (line.starts_with(failure)) {
    TasksEnded ended{node_names(line.substr(failure.size())),
                     "Slurm says that the node has failed"};
    return ended.nodes.empty() ? std::nullopt : std::optional(std::move(ended));
  }
  const std::size_t colon = line.find(": task");
  if (colon == line.npos) return std::nullopt;
  const std::size_t reason = line.find(": ", colon + 2);
  if (reason == line.npos) return std::nullopt;
  TasksEnded ended{node_names(line.substr(0, colon)),
                   fmt::format("elasticrun-agent: {}", hosts::shown(line.substr(reason + 2)))};
  return ended.nodes.empty() ? std::nullopt : std::optional(std::move(ended));
}

}  // namespace elasticrun::launcher::srun
