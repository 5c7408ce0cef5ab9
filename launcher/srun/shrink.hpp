// What Slurm is asked for to take nodes back from a running job. Pure.
#pragma once

#include <string>

namespace elasticrun::launcher::srun {

// For sh(1), which reads the nodes to give back from its standard input, one a line; none is right,
// too. `job`: its id, digits only.
std::string shrink_command(const std::string& job);

}  // namespace elasticrun::launcher::srun
