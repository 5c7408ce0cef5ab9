// What Slurm says of nodes, read. Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace elasticrun::launcher::srun {

// By node, what Slurm says that changes what the job does with it.
struct NodeNews {
  std::map<std::string, std::string> go;    // "Slurm has it draining (bad fan)"
  std::map<std::string, std::string> stay;  // was to go: "Slurm has it allocated"
};

// From lines of node, state and reason, as sinfo prints them, a node once for each of its
// partitions. `going`: the nodes that were to go before. No news, when all nodes are drained: then
// there is nowhere to go, and Slurm lets the job end.
NodeNews node_news(std::string_view lines, const std::set<std::string>& going);

}  // namespace elasticrun::launcher::srun
