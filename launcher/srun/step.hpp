// The text of a step of Slurm that starts agents: its command line, and the lines that come back.
// Pure.
//
// One srun starts the agents of many nodes, because each srun costs Slurm's controller a step. The
// step is made for what happens to nodes: it overlaps with all others, no task that ends ends the
// others, and the loss of a node is not the loss of the step.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace elasticrun::launcher::srun {

struct Step {
  std::vector<std::string> nodes;  // in Slurm's order: task k is on nodes[k]
  int component = -1;              // of a heterogeneous job; -1: the job is none
  std::string agent;               // path of elasticrun-agent here
  std::string copy;                // where Slurm copies it to on each node
  std::string mark;                // begins the line that says that an agent is there
  std::string wrap;                // command that agents are started inside of; empty: none
};

// Arguments for /usr/bin/env: srun without those of the caller's variables that would be options of
// its. With `wrap`, the agent is not copied: it must be on the nodes under the path that it has
// here.
std::vector<std::string> start_arguments(const Step& step);
// The same for a script of sh(1) on one node, beside all that runs there.
std::vector<std::string> script_arguments(const std::string& node, int component,
                                          const std::string& script);

// A line of a task, which srun --label begins with the task's number.
struct TaskLine {
  int task = 0;
  std::string_view text;
};
std::optional<TaskLine> task_line(std::string_view line);

// The line of an agent that it is there ("MARK ready 0 1234"), or that its file is damaged.
struct AgentThere {
  bool damaged = false;
  int pid = 0;  // of its watchdog
};
std::optional<AgentThere> agent_there(std::string_view text, std::string_view mark);

// A line by which srun says that tasks have ended: "srun: error: n[2-3]: tasks 1-2: Killed".
struct TasksEnded {
  std::vector<std::string> nodes;
  std::string reason;
};
std::optional<TasksEnded> tasks_ended(std::string_view line);

// The names in "n[1-2],m3"; none if that is no list of nodes.
std::vector<std::string> node_names(std::string_view list);

}  // namespace elasticrun::launcher::srun
