// What one call of elasticrun asks for, after flags, environment and configuration have been merged
// and checked. Whoever makes one (the command line, a test, the simulator) hands it to the job;
// nothing in it knows where a value came from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "autoscaler/batch_plan.hpp"
#include "autoscaler/objective.hpp"
#include "job/deadlines.hpp"
#include "launcher/hosts/host_filter.hpp"
#include "launcher/hosts/hosts.hpp"
#include "launcher/hosts/plan.hpp"
#include "launcher/machine/environment.hpp"
#include "launcher/ssh/config.hpp"

namespace elasticrun::job {

// What is done about a worker that is slower than the others.
enum class StragglerAction { off, report, replace };

struct JobSpec {
  std::vector<std::string> argv;  // the program and its arguments; never empty
  bool ship = false;              // the program is copied to hosts that lack it
  std::string cwd;

  std::vector<launcher::hosts::Host> hosts;  // chosen ones; at least one that is no spare
  std::string hosts_file;       // read again when it changes; empty: hosts came another way
  std::string host_discovery;   // a program that is asked again and again; empty: likewise
  std::string discovery_words;  // what it wrote to standard error when it was asked first
  launcher::hosts::HostFilter host_filter;  // chooses among hosts that are read again
  std::string join_key;            // file that lets hosts join by themselves; empty: none may
  int default_slots = 1;           // of a host that does not say
  bool slots_are_gpus = false;     // such a host has as many as GPUs, if it has any
  bool one_gpu_visible = false;    // to a worker; else all of the job's on its host
  launcher::hosts::Limits limits;  // min <= slots, unless they are discovered; max 0: all
  int start = 0;                   // size to begin with; 0: all that the limits allow
  launcher::hosts::Unit unit = launcher::hosts::Unit::host;

  autoscaler::BatchRule batch;  // what the command line says of it; the program adds the rest
  std::string policy = "fixed";
  autoscaler::Aims aims;  // of the policies named after them
  double price = 1;       // of a worker per hour, where its host does not say
  int spares = 0;         // workers that are started and ready, and not in the world
  StragglerAction stragglers = StragglerAction::replace;
  bool shares_by_speed = true;      // of a step's samples; else equal
  std::optional<int> max_restarts;  // not said: 0 for plain programs, 10 for those with the library

  Deadlines deadlines;
  launcher::machine::EnvironmentRules environment;
  std::vector<std::string> caller_environment;  // NAME=VALUE
  launcher::ssh::SshOverrides ssh;              // of the command line
  std::string bind;                             // where we listen; empty: where hosts can dial
  std::string network;                          // of the data plane; empty: likewise
  std::int64_t verify_state = 5000;             // steps to compare all of it in; 0: not
  std::string backend = "auto";                 // of the data plane: auto, gloo or nccl
  std::string wrap;                             // what agents are started inside of; empty: nothing
  std::uint16_t port_first = 0;                 // where agents dial; 0: any free port
  std::uint16_t port_last = 0;

  std::string log_dir;      // a file per worker in it; empty: none
  bool label = true;        // "host:rank: " before each line of output
  bool quiet = false;       // of our own lines only errors and the last words
  std::string events_file;  // empty: none
  bool explain = false;
  bool dry_run = false;
};

}  // namespace elasticrun::job
