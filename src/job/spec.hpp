// What one call of elasticrun asks for, after flags, environment and configuration have been merged
// and checked. The command line, a test or the simulator makes a JobSpec and hands it to the job;
// nothing in it depends on where a value came from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "autoscaler/batch_plan.hpp"
#include "autoscaler/objective.hpp"
#include "job/deadlines.hpp"
#include "job/streams.hpp"
#include "launcher/hosts/allocation.hpp"
#include "launcher/hosts/host_filter.hpp"
#include "launcher/hosts/hosts.hpp"
#include "launcher/hosts/plan.hpp"
#include "launcher/machine/environment.hpp"
#include "launcher/ssh/config.hpp"
#include "wire/saved/manifest.hpp"

namespace elasticrun::job {

// What the job does about a straggler, a worker that is slower than the others.
enum class StragglerAction { off, report, replace };

struct JobSpec {
  std::vector<std::string> argv;  // the program and its arguments; never empty
  bool ship = false;              // copy the program to hosts that lack it
  std::string cwd;

  std::vector<launcher::hosts::Host> hosts;  // those chosen; at least one is not a spare
  // The job of Slurm that the hosts are from: agents are started by srun. Empty: by ssh.
  std::optional<launcher::hosts::SlurmAllocation> slurm;
  std::string hosts_file;       // host file, read again when it changes; empty: none
  std::string host_discovery;   // program that is run periodically and prints hosts; empty: none
  std::string discovery_words;  // what its first run wrote to standard error
  launcher::hosts::HostFilter host_filter;  // applied whenever hosts are read again
  std::string join_key;          // file with a key by which hosts may join; empty: none may join
  std::string slurm_grow;        // options for sbatch, to ask for more hosts; empty: none
  Duration slurm_shrink{};       // nodes that were unused for that long are given back; 0: none are
  int default_slots = 1;         // slots of a host that does not give a number
  bool slots_are_gpus = false;   // such a host has one slot per GPU instead, if it has GPUs
  bool one_gpu_visible = false;  // a worker sees its own GPU only; else all of the job's there
  launcher::hosts::Limits limits;  // min <= slots, unless hosts are discovered; max 0: all slots
  bool resizable = false;          // a range was given: a plain program is restarted at other sizes
  int start = 0;                   // initial size; 0: the largest that the limits allow
  launcher::hosts::Unit unit = launcher::hosts::Unit::host;

  autoscaler::BatchRule batch;  // as far as flags set it; the program adds the rest
  std::string policy = "fixed";
  autoscaler::Aims aims;  // for the policies utility, budget and deadline
  double price = 1;       // of a worker per hour, where its host has no price
  int spares = 0;         // number of workers kept started and ready, but not in the world
  StragglerAction stragglers = StragglerAction::replace;
  bool shares_by_speed = true;      // shares of a step's samples follow speed; else they are equal
  std::optional<int> max_restarts;  // unset: 0 for plain programs, 10 for those with the library

  // --save and what belongs to it.
  struct Saving {
    std::string folder;     // absolute; empty: the state is not saved
    Duration every{};       // also while the job runs; 0: only when it stops
    int stop_signal = 0;    // a further signal by which the job stops; 0: none
    Duration time_limit{};  // the job stops before it has run for that long; 0: it may run for ever
    std::string limited_by = "--time-limit";  // whose limit that is
    std::string slurm_job;                    // of Slurm, in which this runs; empty: none
    // What the folder held at the start.
    std::vector<wire::saved::Save> found = {};  // the newest first
    std::int64_t next_number = 1;               // for the next save
  };
  Saving saving;
  Deadlines deadlines;
  launcher::machine::EnvironmentRules environment;
  std::vector<std::string> caller_environment;  // NAME=VALUE
  launcher::ssh::SshOverrides ssh;              // from flags
  std::string bind;                             // where we listen; empty: where hosts can dial
  std::string network;                          // of the data plane; empty: where hosts can dial
  std::int64_t verify_state = 5000;             // steps in which all state is compared once; 0: off
  std::string backend = "auto";                 // of the data plane: auto, gloo or nccl
  std::string notice;                           // says on each host that it will go; empty: none
  std::string wrap;                             // command that agents are started in; empty: none
  std::uint16_t port_first = 0;                 // range of ports agents dial; 0: any free port
  std::uint16_t port_last = 0;

  std::string log_dir;      // folder for one log file per worker and stream; empty: no log files
  Streams streams;          // which lines are shown, and which go to log files
  bool label = true;        // put "host:rank: " before each line of output
  bool quiet = false;       // of our own lines, print only errors
  std::string events_file;  // empty: none
  bool explain = false;
  bool dry_run = false;
};

}  // namespace elasticrun::job
