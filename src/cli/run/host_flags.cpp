// See host_flags.hpp.
#include "cli/run/host_flags.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "cli/flags.hpp"
#include "cli/suggest.hpp"
#include "job/driver/host_source.hpp"
#include "launcher/hosts/host_filter.hpp"

namespace elasticrun::cli::run {
namespace {

constexpr const char* source_names[] = {"hosts", "host-list", "host-discovery"};

const Setting* find(const Settings& settings, std::string_view name) {
  const auto found = settings.find(name);
  return found == settings.end() ? nullptr : &found->second;
}

// The setting for hosts with the strongest source; null if there is none. An error if two of equal
// strength are given.
Result<const Setting*> only_source(const Settings& settings) {
  const Setting* best = nullptr;
  for (const char* name : source_names)
    if (const Setting* one = find(settings, name); one && (!best || one->source > best->source))
      best = one;
  for (const char* name : source_names)
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
  auto found = job::driver::run_hook(job::driver::discovery_hook(spec));
  if (!found.output)
    return job::driver::discovery_trouble(spec, program.place, found.output.error());
  auto hosts = launcher::hosts::parse_hosts(*found.output, program.place);
  if (!hosts) return hosts.error();
  spec.hosts = std::move(*hosts);
  spec.discovery_words = std::move(found.stderr_text);
  return {};
}

}  // namespace

Result<void> read_host_flags(const Settings& settings, job::JobSpec& spec) {
  const auto source = only_source(settings);
  if (!source) return source.error();
  const Setting* const given = *source;
  Result<std::vector<launcher::hosts::Host>> hosts(boost::system::in_place_value);
  if (given && given == find(settings, "host-discovery")) {
    spec.host_discovery = given->values.back();
  } else if (given && given == find(settings, "host-list")) {
    hosts = launcher::hosts::parse_host_list(given->values.back(), given->place);
  } else if (given) {
    spec.hosts_file = given->values.back();
    const auto content = read_text(spec.hosts_file, given->place);
    if (!content) return content.error();
    hosts = launcher::hosts::parse_hosts(*content, spec.hosts_file);
  }
  if (!hosts) return hosts.error();
  spec.hosts = std::move(*hosts);
  for (const bool include : {true, false}) {
    const Setting* const list = find(settings, include ? "include" : "exclude");
    if (!list) continue;
    if (!given)
      return Error{
          fmt::format("{}: there are no hosts to choose from; give --hosts, -H or "
                      "--host-discovery",
                      list->place)};
    auto names = include ? launcher::hosts::parse_include(list->values.back(), list->place)
                         : launcher::hosts::parse_exclude(list->values.back(), list->place);
    if (!names) return names.error();
    (include ? spec.host_filter.include : spec.host_filter.exclude) = std::move(*names);
  }
  return {};
}

Result<void> find_hosts(const Settings& settings, job::JobSpec& spec) {
  if (!spec.host_discovery.empty()) {
    if (auto done = discover(*find(settings, "host-discovery"), spec); !done) return done;
  }
  const launcher::hosts::HostFilter& filter = spec.host_filter;
  if (filter.include.empty() && filter.exclude.empty()) return {};
  for (const char* name : {"include", "exclude"}) {
    // Discovered hosts come and go; naming one that is not there yet is no mistake.
    if (!spec.host_discovery.empty()) break;
    const auto& list = name == std::string_view("include") ? filter.include : filter.exclude;
    const launcher::hosts::Host* const unknown = launcher::hosts::first_unknown(list, spec.hosts);
    if (unknown)
      return Error{fmt::format("{}: {} is not among the hosts{}", find(settings, name)->place,
                               launcher::hosts::key_of(*unknown),
                               near_name(unknown->name, spec.hosts))};
  }
  spec.hosts = launcher::hosts::chosen(std::move(spec.hosts), filter);
  if (!spec.hosts.empty()) return {};
  const Setting* const last = find(settings, filter.exclude.empty() ? "include" : "exclude");
  return Error{fmt::format("{}: no host is left", last->place)};
}

}  // namespace elasticrun::cli::run
