// See hooks.hpp.
#include "job/driver/hooks.hpp"

#include <fmt/format.h>

#include "autoscaler/exec.hpp"
#include "launcher/hosts/host_line.hpp"

namespace elasticrun::job::driver {

launcher::executors::Hook discovery_hook(const JobSpec& spec) {
  return {spec.host_discovery, spec.deadlines.discovery_timeout, "--discovery-timeout"};
}

Error discovery_trouble(const JobSpec& spec, std::string_view place, const Error& trouble) {
  return {
      fmt::format("{}: '{}' {}", place, launcher::hosts::shown(spec.host_discovery), trouble.text)};
}

launcher::executors::Hook advice_hook(const JobSpec& spec) {
  const auto program = autoscaler::Exec::program_of(spec.policy).value_or("");
  return {std::string(program), spec.deadlines.policy_timeout, "--policy-timeout"};
}

}  // namespace elasticrun::job::driver
