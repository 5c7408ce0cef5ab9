// The hosts that a batch system has given to the job in which elasticrun runs.
//
// Who is inside an allocation has said already where to run, so nobody should write a host file for
// it. Each system says it by environment variables: Slurm lists nodes and what each has, the others
// name a file that is a host file to us (hosts.hpp). Pure: variables in, hosts or one error out.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "launcher/hosts/hosts.hpp"

namespace elasticrun::launcher::hosts {

// Environment variables by name.
using Variables = std::map<std::string, std::string, std::less<>>;
Variables to_variables(std::span<const std::string> environment);

// The file in which PBS, LSF or Grid Engine has written the hosts of this job.
struct AllocationFile {
  std::string variable;  // that names it
  std::string path;
};
std::optional<AllocationFile> allocation_file(const Variables& environment);

// What Slurm has given to a job.
struct SlurmAllocation {
  std::string job;  // its id; of a heterogeneous job: of its first component
  // In Slurm's order. Each has its slots: GPUs if the job has some, else tasks, which Slurm counts
  // by processors where the user did not say; 0: its GPUs, whose number Slurm does not tell here.
  // In a heterogeneous job `type` is "het" with the number of the component.
  std::vector<Host> hosts;
  // The component of each host, in the order of `hosts`; empty: the job is not heterogeneous.
  std::vector<int> components;

  bool operator==(const SlurmAllocation&) const = default;
};
// Nothing if we are in no job of Slurm. An error when its variables make no sense, or when this is
// one of several tasks of a step: each of them would be an elasticrun of its own.
Result<std::optional<SlurmAllocation>> slurm_allocation(const Variables& environment);

// Slurm's notation for a row of numbers: "2(x3),1" is 2 2 2 1.
Result<std::vector<int>> parse_repeated(std::string_view text);

}  // namespace elasticrun::launcher::hosts
