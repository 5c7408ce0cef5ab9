// What Slurm says of nodes, read. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace elasticrun::launcher::srun {

// By node, why the job should leave it: "Slurm has it draining (bad fan)". None, when that is all
// of them: then there is nowhere to go, and Slurm lets the job end. From lines of node, state and
// reason, as sinfo prints them, a node once for each of its partitions.
std::map<std::string, std::string> nodes_that_go(std::string_view lines);

}  // namespace elasticrun::launcher::srun
