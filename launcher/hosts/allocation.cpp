// See allocation.hpp.
#include "launcher/hosts/allocation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "launcher/hosts/host_line.hpp"

namespace elasticrun::launcher::hosts {
namespace {

std::string_view value(const Variables& environment, std::string_view name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string_view() : std::string_view(found->second);
}

Error misfit(std::string_view name, std::string_view text, std::string_view why) {
  return Error{fmt::format("{}={}: {}; give the hosts by --hosts or -H", name, shown(text), why)};
}

Result<std::vector<std::string>> node_names(std::string_view name, std::string_view list) {
  std::vector<std::string> names;
  for (std::string_view rest = list;;) {
    const std::size_t end = end_of_item(rest);
    auto some = expand_ranges(rest.substr(0, end));
    if (!some) return misfit(name, list, some.error().text);
    for (const std::string& one : *some)
      if (const auto valid = check_name(one); !valid) return misfit(name, list, valid.error().text);
    names.insert(names.end(), some->begin(), some->end());
    if (names.size() > hosts_max)
      return misfit(name, list, fmt::format("more than {} hosts", hosts_max));
    if (end == rest.size()) return names;
    rest.remove_prefix(end + 1);
  }
}

// The number of GPUs in "8", "a100:8", "gpu:8", "a100:4,v100:2"; 0: it says none.
int gpus_in(std::string_view text) {
  int sum = 0;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    const auto number = whole_number(item.substr(item.rfind(':') + 1));  // npos + 1 is 0
    sum += number && *number > 0 && *number <= slots_per_host_max ? static_cast<int>(*number) : 0;
  }
  return std::min(sum, slots_per_host_max);
}

// One component of a job, or the whole of one that has no components. Its variables end in
// `suffix`.
Result<std::vector<Host>> component(const Variables& environment, const std::string& suffix) {
  const auto named = [&](std::string_view name) { return fmt::format("{}{}", name, suffix); };
  const auto get = [&](std::string_view name) { return value(environment, named(name)); };
  const std::string list_name = named("SLURM_JOB_NODELIST");
  if (get("SLURM_JOB_NODELIST").empty())
    return misfit(list_name, "", "inside a job of Slurm it names the nodes");
  auto names = node_names(list_name, get("SLURM_JOB_NODELIST"));
  if (!names) return names.error();

  const bool has_gpus = !get("SLURM_GPUS_PER_NODE").empty() || !get("SLURM_GPUS").empty() ||
                        !get("SLURM_GPUS_PER_TASK").empty() || !get("SLURM_JOB_GPUS").empty() ||
                        !get("SLURM_GPUS_ON_NODE").empty();
  std::vector<int> slots(names->size(), gpus_in(get("SLURM_GPUS_PER_NODE")));
  if (!has_gpus) {
    // Inside a step this variable is about the step.
    const bool in_step = !value(environment, "SLURM_STEP_ID").empty();
    const std::string_view tasks =
        get(in_step ? "SLURM_JOB_CPUS_PER_NODE" : "SLURM_TASKS_PER_NODE");
    auto counts = tasks.empty() ? std::vector<int>(names->size(), 1) : parse_repeated(tasks);
    if (!counts) return misfit(named("SLURM_TASKS_PER_NODE"), tasks, counts.error().text);
    if (counts->size() < names->size())
      return misfit(
          named("SLURM_TASKS_PER_NODE"), tasks,
          fmt::format("it is for {}, and there are {}",
                      counted(static_cast<std::int64_t>(counts->size()), "node"), names->size()));
    slots = std::move(*counts);
  }
  std::vector<Host> hosts(names->size());
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    hosts[i].name = std::move((*names)[i]);
    hosts[i].slots = std::min(slots[i], slots_per_host_max);
  }
  return hosts;
}

}  // namespace

Variables to_variables(std::span<const std::string> environment) {
  Variables variables;
  for (const std::string& one : environment)
    if (const auto equals = one.find('='); equals != one.npos && equals > 0)
      variables.emplace(one.substr(0, equals), one.substr(equals + 1));
  return variables;
}

std::optional<AllocationFile> allocation_file(const Variables& environment) {
  // The variable that names the file, and one that is only set inside a job of the system.
  constexpr std::pair<std::string_view, std::string_view> systems[] = {
      {"PBS_NODEFILE", "PBS_JOBID"},
      {"LSB_DJOB_HOSTFILE", "LSB_JOBID"},
      {"PE_HOSTFILE", "JOB_ID"},
  };
  for (const auto& [file, job] : systems)
    if (!value(environment, file).empty() && !value(environment, job).empty())
      return AllocationFile{std::string(file), std::string(value(environment, file))};
  return std::nullopt;
}

Result<std::vector<int>> parse_repeated(std::string_view text) {
  std::vector<int> numbers;
  while (true) {
    const std::string_view item = text.substr(0, text.find(','));
    const auto open = item.find("(x");
    const auto number = whole_number(item.substr(0, open));
    std::optional<std::int64_t> times = 1;
    if (open != item.npos) {
      times = item.ends_with(')') ? whole_number(item.substr(open + 2, item.size() - open - 3))
                                  : std::nullopt;
    }
    const auto most = static_cast<std::int64_t>(hosts_max - numbers.size());
    if (!number || *number < 0 || *number > 1'000'000 || !times || *times < 1 || *times > most)
      return Error{fmt::format("'{}' is no number with its count, as in 2(x3)", shown(item))};
    numbers.insert(numbers.end(), static_cast<std::size_t>(*times), static_cast<int>(*number));
    if (item.size() == text.size()) return numbers;
    text.remove_prefix(item.size() + 1);
  }
}

Result<std::optional<SlurmAllocation>> slurm_allocation(const Variables& environment) {
  SlurmAllocation allocation;
  allocation.job = value(environment, "SLURM_JOB_ID");
  if (allocation.job.empty()) return std::optional<SlurmAllocation>();
  if (!whole_number(allocation.job))
    return Error{fmt::format("SLURM_JOB_ID: '{}' is no number", allocation.job)};
  // Slurm sets this in a step, and not in a batch script or under salloc.
  const auto tasks = whole_number(value(environment, "SLURM_STEP_NUM_TASKS"));
  if (tasks && *tasks > 1)
    return Error{fmt::format(
        "srun has started {} of elasticrun; start one, which starts the workers on all nodes: "
        "write elasticrun without srun, in the batch script or under salloc",
        counted(*tasks, "task"))};

  const std::string_view size = value(environment, "SLURM_HET_SIZE");
  const auto components = size.empty() ? 1 : whole_number(size).value_or(0);
  if (components < 1 || components > 128)
    return misfit("SLURM_HET_SIZE", size, "that is no number of components");
  std::set<std::string> seen;
  for (std::int64_t i = 0; i < components; ++i) {
    const std::string suffix = size.empty() ? "" : fmt::format("_HET_GROUP_{}", i);
    auto hosts = component(environment, suffix);
    if (!hosts) return hosts.error();
    for (Host& host : *hosts) {
      // Two components may share a node; it is a host of the first one.
      if (!seen.insert(lower(host.name)).second) continue;
      if (!size.empty()) {
        host.type = fmt::format("het{}", i);
        allocation.components.push_back(static_cast<int>(i));
      }
      host.line = static_cast<int>(allocation.hosts.size()) + 1;
      allocation.hosts.push_back(std::move(host));
    }
  }
  return std::optional(std::move(allocation));
}

}  // namespace elasticrun::launcher::hosts
