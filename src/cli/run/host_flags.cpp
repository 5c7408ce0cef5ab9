// See host_flags.hpp.
#include "cli/run/host_flags.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags.hpp"
#include "cli/suggest.hpp"
#include "job/driver/hooks.hpp"
#include "launcher/executors/agent_start.hpp"
#include "launcher/hosts/host_filter.hpp"

namespace elasticrun::cli::run {
namespace {

constexpr FlagName source_names[] = {"hosts", "host-list", "host-discovery"};

// The setting for hosts with the strongest source; null if there is none. An error if two of equal
// strength are given.
Result<const Setting*> only_source(const Settings& settings) {
  const Setting* best = nullptr;
  for (const FlagName name : source_names)
    if (const Setting* one = find(settings, name); one && (!best || one->source > best->source))
      best = one;
  for (const FlagName name : source_names)
    if (const Setting* one = find(settings, name);
        one && one != best && one->source == best->source)
      return Error{
          fmt::format("{}: {} is given as well; use one of them", one->place, best->place)};
  return best;
}

std::string near_name(const std::string& name, const std::vector<launcher::hosts::Host>& hosts) {
  std::vector<std::string_view> names;
  names.reserve(hosts.size());
  for (const auto& host : hosts) names.emplace_back(host.name);
  const std::string_view near = closest(name, names);
  return near.empty() ? "" : fmt::format("; did you mean {}?", near);
}

Result<void> discover(const Setting& program, job::JobSpec& spec) {
  auto found = launcher::executors::run_hook(job::driver::discovery_hook(spec));
  if (!found.output)
    return job::driver::discovery_trouble(spec, program.place, found.output.error());
  auto hosts = launcher::hosts::parse_hosts(*found.output, program.place);
  if (!hosts) return hosts.error();
  spec.hosts = std::move(*hosts);
  spec.discovery_words = std::move(found.stderr_text);
  return {};
}

// The hosts that a file or a list names; none for a discovery program, which is not run here.
Result<std::vector<launcher::hosts::Host>> named_hosts(const Settings& settings,
                                                       const Setting& given, job::JobSpec& spec) {
  const std::string& value = given.values.back();
  if (&given == find(settings, "host-list"))
    return launcher::hosts::parse_host_list(value, given.place);
  if (&given == find(settings, "host-discovery")) {
    spec.host_discovery = value;
    return std::vector<launcher::hosts::Host>();
  }
  spec.hosts_file = value;
  const auto content = read_text(value, given.place);
  if (!content) return content.error();
  return launcher::hosts::parse_hosts(*content, value);
}

// The hosts of the batch system inside whose job we are; none outside of one.
Result<void> take_allocation(const launcher::hosts::Variables& environment, job::JobSpec& spec) {
  auto slurm = launcher::hosts::slurm_allocation(environment);
  if (!slurm) return slurm.error();
  spec.slurm = std::move(*slurm);
  if (spec.slurm) {
    spec.hosts = spec.slurm->hosts;
    return {};
  }
  const auto file = launcher::hosts::allocation_file(environment);
  if (!file) return {};
  const auto content = read_text(file->path, file->variable);
  if (!content) return content.error();
  auto hosts = launcher::hosts::parse_hosts(*content, file->path);
  if (!hosts) return hosts.error();
  spec.hosts = std::move(*hosts);
  // Here a host is written once for each of its slots, also when no host is written twice.
  for (launcher::hosts::Host& host : spec.hosts) host.slots = std::max(host.slots, 1);
  return {};
}

// --join-key and --slurm-grow, whose jobs find the key in a file beside the job's.
Result<void> read_join_flags(const Settings& settings,
                             const launcher::hosts::Variables& environment, job::JobSpec& spec) {
  if (const Setting* const key = find(settings, "join-key")) spec.join_key = key->values.back();
  const Setting* const grow = find(settings, "slurm-grow");
  if (!grow) return {};
  spec.slurm_grow = grow->values.back();
  if (spec.slurm_grow.find("--array") == std::string::npos && !spec.slurm_grow.starts_with("-a"))
    return Error{fmt::format("{}: add --array=1-N to the options, for N more jobs", grow->place)};
  if (spec.slurm_grow.find('\n') != std::string::npos)
    return Error{fmt::format("{}: write the options in one line", grow->place)};
  if (spec.join_key.empty()) {
    const auto job = environment.find("SLURM_JOB_ID");
    spec.join_key = fmt::format(
        ".elasticrun-{}.key",
        job != environment.end() ? job->second : std::to_string(static_cast<int>(::getpid())));
  }
  if (!spec.join_key.starts_with('/')) spec.join_key = spec.cwd + '/' + spec.join_key;
  return {};
}

Result<void> read_shrink_flag(const Settings& settings, job::JobSpec& spec) {
  const Setting* const shrink = find(settings, "slurm-shrink");
  if (!shrink) return {};
  const auto time = time_above_zero(*shrink);
  if (!time) return time.error();
  if (!spec.slurm)
    return Error{fmt::format(
        "{}: the hosts are not those of a job of Slurm, and cannot be given back", shrink->place)};
  if (!spec.slurm->components.empty())
    return Error{
        fmt::format("{}: Slurm takes no node back from a heterogeneous job", shrink->place)};
  spec.slurm_shrink = *time;
  return {};
}

using launcher::hosts::HostFilter;

struct FilterFlag {
  FlagName name;
  std::vector<launcher::hosts::Host> HostFilter::*list;
  Result<std::vector<launcher::hosts::Host>> (*parse)(std::string_view, std::string_view);
};
constexpr FilterFlag filter_flags[] = {
    {"include", &HostFilter::include, launcher::hosts::parse_include},
    {"exclude", &HostFilter::exclude, launcher::hosts::parse_exclude}};

// The start line of an agent has a limit, of which each of these texts may take a quarter.
Result<void> check_start_line(const Settings& settings) {
  constexpr std::size_t most = launcher::executors::agent_start_bytes_max / 4;
  for (const FlagName name : {FlagName("notice"), FlagName("network")}) {
    const Setting* const setting = find(settings, name);
    if (!setting) continue;
    const launcher::executors::AgentStart alone{.notice = setting->values.back()};
    if (const std::size_t bytes = launcher::executors::encode(alone).size(); bytes > most)
      return Error{
          fmt::format("{}: the text is too long: it takes {} bytes on its way to the hosts, "
                      "and at most {} fit; put it into a file",
                      setting->place, bytes, most)};
  }
  return {};
}

}  // namespace

Result<void> read_host_flags(const Settings& settings,
                             const launcher::hosts::Variables& environment, job::JobSpec& spec) {
  const auto source = only_source(settings);
  if (!source) return source.error();
  const Setting* const given = *source;
  if (given) {
    auto hosts = named_hosts(settings, *given, spec);
    if (!hosts) return hosts.error();
    spec.hosts = std::move(*hosts);
  } else if (auto taken = take_allocation(environment, spec); !taken) {
    return taken;
  }
  if (auto fits = check_start_line(settings); !fits) return fits;
  if (auto joining = read_join_flags(settings, environment, spec); !joining) return joining;
  if (auto shrinking = read_shrink_flag(settings, spec); !shrinking) return shrinking;
  for (const FilterFlag& flag : filter_flags) {
    const Setting* const list = find(settings, flag.name);
    if (!list) continue;
    if (!given && spec.hosts.empty())
      return Error{
          fmt::format("{}: there are no hosts to choose from; give --hosts, -H or "
                      "--host-discovery",
                      list->place)};
    auto names = flag.parse(list->values.back(), list->place);
    if (!names) return names.error();
    spec.host_filter.*flag.list = std::move(*names);
  }
  return {};
}

Result<void> find_hosts(const Settings& settings, job::JobSpec& spec) {
  // What a batch system says of its hosts was not written by the user, and --slots is.
  const auto given = only_source(settings);
  if (given && !*given && find(settings, "slots"))
    for (launcher::hosts::Host& host : spec.hosts)
      host.slots = spec.slots_are_gpus ? 0 : spec.default_slots;
  const bool discovered = !spec.host_discovery.empty();
  if (discovered)
    if (auto done = discover(*find(settings, "host-discovery"), spec); !done) return done;
  const HostFilter& filter = spec.host_filter;
  if (filter.include.empty() && filter.exclude.empty()) return {};
  // Discovered hosts come and go; naming one that is not there yet is no mistake.
  if (!discovered)
    for (const FilterFlag& flag : filter_flags)
      if (const auto* unknown = launcher::hosts::first_unknown(filter.*flag.list, spec.hosts))
        return Error{
            fmt::format("{}: {} is not among the hosts{}", find(settings, flag.name)->place,
                        launcher::hosts::key_of(*unknown), near_name(unknown->name, spec.hosts))};
  spec.hosts = launcher::hosts::chosen(std::move(spec.hosts), filter);
  if (!spec.hosts.empty()) return {};
  const FlagName last = filter.exclude.empty() ? FlagName("include") : FlagName("exclude");
  return Error{fmt::format("{}: no host is left", find(settings, last)->place)};
}

}  // namespace elasticrun::cli::run
