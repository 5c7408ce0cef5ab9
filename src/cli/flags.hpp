// The table of flags. One row defines the flag, its name in the environment, its key in a
// configuration file and its line of --help, so that these four cannot differ.
//
// The table is known to the compiler, which checks the names that are given to FlagName: one that
// is not in the table does not compile. Names inside of texts are not checked.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "job/deadlines.hpp"

namespace elasticrun::cli {

enum class Kind {
  value,   // one value; if it is given several times, the last one counts
  list,    // every value counts
  toggle,  // no value
  command  // no value, and only on the command line
};

// In the order of --help.
enum class Group { common, scaling, saving, hosts, deadlines, output, scripting };
constexpr std::string_view group_headings[] = {
    "Common", "Scaling",  "Saving", "Hosts", "Deadlines (TIME is a number with ms, s, m or h)",
    "Output", "Scripting"};

struct Flag {
  std::string_view name;    // without dashes; also the key in a configuration file
  std::string_view others;  // other spellings with their dashes, separated by a space
  std::string_view value;   // what --help calls the value; empty: the flag takes none
  Kind kind = Kind::value;
  Group group = Group::common;
  std::string_view standard;  // the default as text; empty: none
  std::string_view help;      // begins with a verb
};

inline constexpr Flag flags_before_deadlines[] = {
    {"hosts", "--hostfile", "FILE", Kind::value, Group::common, "",
     "read hosts from FILE, again when it changes"},
    {"host-list", "-H", "LIST", Kind::value, Group::common, "this machine",
     "use these hosts: a:4,b:4"},
    {"slots", "--nproc-per-node", "N", Kind::value, Group::common, "auto",
     "run N workers a host; auto: one per GPU"},
    {"np", "-n -np", "N", Kind::value, Group::common, "all slots",
     "run N workers, or MIN:MAX of them"},
    {"max-batch", "", "B", Kind::value, Group::common, "", "limit the global batch to B samples"},

    {"min-np", "", "N", Kind::value, Group::scaling, "1", "run at least N workers"},
    {"max-np", "", "N", Kind::value, Group::scaling, "all slots", "run at most N workers"},
    {"nnodes", "", "N|MIN:MAX", Kind::value, Group::scaling, "all", "limit the number of hosts"},
    {"start", "", "N", Kind::value, Group::scaling, "all", "begin with N workers"},
    {"unit", "", "UNIT", Kind::value, Group::scaling, "", "add and remove whole hosts, or slots"},
    {"batch", "", "b", Kind::value, Group::scaling, "", "set the efficient batch of one worker"},
    {"base-batch", "", "M", Kind::value, Group::scaling, "",
     "set the batch the learning rate was tuned for"},
    {"lr-rule", "", "RULE", Kind::value, Group::scaling, "linear",
     "use linear, sqrt, adascale or none"},
    {"policy", "", "NAME", Kind::value, Group::scaling, "",
     "size the job by fixed, fit, exec:PROGRAM, ..."},
    {"price", "", "P", Kind::value, Group::scaling, "1",
     "charge P for a worker and hour by default"},
    {"utility", "", "LIST", Kind::value, Group::scaling, "",
     "finish when it pays most: 1h:100,2h:40"},
    {"budget", "", "MONEY", Kind::value, Group::scaling, "",
     "run at the fastest size that MONEY buys"},
    {"deadline", "", "TIME", Kind::value, Group::scaling, "",
     "run at the cheapest size that ends in TIME"},
    {"shares", "", "WHAT", Kind::value, Group::scaling, "speed",
     "share samples out by speed, or equal"},
    {"spares", "", "N", Kind::value, Group::scaling, "0", "keep N workers ready outside the world"},
    {"stragglers", "", "WHAT", Kind::value, Group::scaling, "replace",
     "replace or report stragglers, or off"},
    {"verify-state", "", "K|off", Kind::value, Group::scaling, "5000",
     "compare all state once in K steps"},
    {"max-restarts", "", "N", Kind::value, Group::scaling, "",
     "tolerate N failures in a row (10; plain: 0)"},

    {"save", "", "DIR", Kind::value, Group::saving, "",
     "save the state in DIR, and resume from it"},
    {"save-every", "", "TIME", Kind::value, Group::saving, "",
     "also save while the job runs, every TIME"},
    {"stop-signal", "", "SIG", Kind::value, Group::saving, "",
     "stop at SIG, too [inside Slurm: USR1]"},
    {"time-limit", "", "TIME", Kind::value, Group::saving, "",
     "save, stop before TIME [inside Slurm: its own]"},

    {"include", "", "LIST", Kind::value, Group::hosts, "all", "use only these: a,n[1-8],b:2"},
    {"exclude", "", "LIST", Kind::value, Group::hosts, "", "use all hosts but these"},
    {"host-discovery", "", "PROGRAM", Kind::value, Group::hosts, "",
     "ask PROGRAM for the hosts, again and again"},
    {"slurm-grow", "", "OPTIONS", Kind::value, Group::hosts, "",
     "ask Slurm for more: --array=1-4 -t 60 ..."},
    {"slurm-shrink", "", "TIME", Kind::value, Group::hosts, "",
     "give nodes back that are unused for TIME"},
    {"join-key", "", "FILE", Kind::value, Group::hosts, "",
     "write a key with which hosts may join"},
    {"user", "", "NAME", Kind::value, Group::hosts, "", "log in as NAME where no user is given"},
    {"identity", "", "FILE", Kind::value, Group::hosts, "", "use this private key for ssh"},
    {"ssh-port", "", "N", Kind::value, Group::hosts, "",
     "reach sshd at port N where none is given"},
    {"ssh-config", "", "FILE", Kind::value, Group::hosts, "~/.ssh/config",
     "read FILE as ssh -F does"},
    {"known-hosts", "", "FILE", Kind::value, Group::hosts, "",
     "check the hosts' keys against FILE"},
    {"bind", "", "CIDR|NIC", Kind::value, Group::hosts, "", "listen for agents at this address"},
    {"port", "", "N|A-B", Kind::value, Group::hosts, "any", "listen for agents at this port"},
    {"network", "", "CIDR|NIC", Kind::value, Group::hosts, "",
     "connect workers of several hosts over this"},
    {"backend", "", "NAME", Kind::value, Group::hosts, "auto",
     "reduce with gloo (CPUs) or nccl (GPUs)"},
    {"one-gpu-visible", "", "", Kind::toggle, Group::hosts, "",
     "show each worker its own GPU alone"},
    {"notice", "", "COMMAND", Kind::value, Group::hosts, "",
     "leave a host where COMMAND ends with 0"},
    {"wrap", "", "COMMAND", Kind::value, Group::hosts, "",
     "start agents inside COMMAND: numactl -N 0"},
};

inline constexpr Flag flags_after_deadlines[] = {
    {"log-dir", "", "DIR", Kind::value, Group::output, "", "write two files per worker in DIR"},
    {"redirects", "-r", "STREAMS", Kind::value, Group::output, "",
     "write these to DIR only: 1, 2, 3 or 0:3,1:2"},
    {"tee", "-t", "STREAMS", Kind::value, Group::output, "",
     "write these to DIR and show them, too"},
    {"local-ranks-filter", "", "LIST", Kind::value, Group::output, "all",
     "show lines of these local ranks: 0,1"},
    {"label", "", "WHAT", Kind::value, Group::output, "host:rank",
     "label lines by host:rank, or none"},
    {"quiet", "", "", Kind::toggle, Group::output, "", "print only errors of elasticrun itself"},
    {"events", "", "FILE", Kind::value, Group::output, "",
     "append events to FILE, a JSON object a line"},
    {"explain", "", "", Kind::toggle, Group::output, "", "print each decision and its reason"},

    {"dry-run", "", "", Kind::toggle, Group::scripting, "", "print the plan and start nothing"},
    {"config", "", "FILE", Kind::value, Group::scripting, "",
     "read flags from FILE (TOML): max-batch = 256"},
    {"show-config", "", "", Kind::command, Group::scripting, "",
     "print each value and where it is from"},
    {"x", "-x", "NAME[=V]", Kind::list, Group::scripting, "",
     "pass NAME to the workers; repeatable"},
    {"ship", "", "", Kind::toggle, Group::scripting, "", "copy the program to hosts that lack it"},
    {"no-env", "", "", Kind::toggle, Group::scripting, "", "pass only what -x names"},
    {"version", "", "", Kind::command, Group::scripting, "", "print the version"},
    {"help", "-h", "", Kind::command, Group::scripting, "", "print this"},
};

// All flags in the order of --help, those for the deadlines of job/deadlines.hpp included.
inline constexpr auto flags = [] {
  std::array<Flag, std::size(flags_before_deadlines) + std::size(job::deadline_table) +
                       std::size(flags_after_deadlines)>
      all;
  auto next = std::ranges::copy(flags_before_deadlines, all.begin()).out;
  for (const job::DeadlineRow& row : job::deadline_table)
    *next++ = {row.name, "", "TIME", Kind::value, Group::deadlines, row.standard, row.meaning};
  std::ranges::copy(flags_after_deadlines, next);
  return all;
}();

constexpr const Flag* find_flag(std::string_view name) {
  const auto found = std::ranges::find(flags, name, &Flag::name);
  return found == flags.end() ? nullptr : &*found;
}

// A row of the table, made from its name.
class FlagName {
 public:
  consteval FlagName(const char* name) {
    for (const Flag& one : flags)
      if (one.name == name) {
        flag_ = &one;
        return;
      }
    throw "the table of flags has no flag of this name";
  }
  constexpr FlagName(const Flag& flag) : flag_(&flag) {}

  constexpr const Flag& flag() const { return *flag_; }
  constexpr operator std::string_view() const { return flag_->name; }
  constexpr bool operator==(const FlagName&) const = default;

 private:
  const Flag* flag_ = nullptr;
};

// The flag with its dashes: "--max-batch", or "-x" when its name is one letter.
std::string spelled(const Flag& flag);
// Every spelling of the flag with its dashes, spelled(flag) first.
std::vector<std::string> spellings(const Flag& flag);
// "ELASTICRUN_MAX_BATCH"
std::string environment_name(const Flag& flag);

}  // namespace elasticrun::cli
