// What Slurm says of nodes, read. Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace elasticrun::launcher::srun {

// Nodes that the job must leave, or may use again, each with the reason for the user.
struct NodeNews {
  std::map<std::string, std::string> go;    // "Slurm has it draining (bad fan)"
  std::map<std::string, std::string> stay;  // was to go: "Slurm has it allocated"
};

// From lines of node, state and reason, as sinfo prints them, a node once for each of its
// partitions. `going`: the nodes that were in `go` before, and not in `stay` since. No news if all
// nodes are drained: the job has no other node, and Slurm lets it end.
NodeNews node_news(std::string_view lines, const std::set<std::string>& going);

}  // namespace elasticrun::launcher::srun
