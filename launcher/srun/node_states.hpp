// What Slurm says of nodes, read. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace elasticrun::launcher::srun {

// By node, why it will go: "Slurm has it draining (bad fan)". From lines of node, state and reason,
// as sinfo prints them, a node once for each of its partitions.
std::map<std::string, std::string> nodes_that_go(std::string_view lines);

}  // namespace elasticrun::launcher::srun
