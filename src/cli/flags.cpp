// The flags, in the order in which --help prints them.
#include "cli/flags.hpp"

#include <algorithm>

#include "job/deadlines.hpp"

namespace elasticrun::cli {
namespace {

constexpr Flag table[] = {
    {"hosts", "", "FILE", Kind::value, "Common", "", "host file, read again when it changes"},
    {"host-list", "-H", "LIST", Kind::value, "Common", "this machine", "hosts inline: a:4,b:4"},
    {"slots", "--nproc-per-node", "N", Kind::value, "Common", "auto",
     "workers per host; auto: GPUs, else 1"},
    {"np", "-np", "N", Kind::value, "Common", "all slots", "workers, or their limits MIN:MAX"},
    {"max-batch", "", "B", Kind::value, "Common", "", "largest global batch, in samples"},

    {"min-np", "", "N", Kind::value, "Scaling", "1", "fewest workers"},
    {"max-np", "", "N", Kind::value, "Scaling", "all slots", "most workers"},
    {"nnodes", "", "MIN:MAX", Kind::value, "Scaling", "all", "limits in hosts"},
    {"start", "", "N", Kind::value, "Scaling", "all", "workers to begin with"},
    {"unit", "", "UNIT", Kind::value, "Scaling", "", "host or slot: what a change adds at least"},
    {"batch", "", "b", Kind::value, "Scaling", "", "efficient batch of one worker"},
    {"base-batch", "", "M", Kind::value, "Scaling", "", "batch the learning rate was tuned for"},
    {"lr-rule", "", "RULE", Kind::value, "Scaling", "linear", "linear, sqrt, adascale or none"},
    {"policy", "", "NAME", Kind::value, "Scaling", "", "fixed, throughput, fit, exec:PROGRAM, ..."},
    {"price", "", "P", Kind::value, "Scaling", "1", "of a worker per hour, if its host has none"},
    {"utility", "", "LIST", Kind::value, "Scaling", "", "what an end then is worth: 1h:100,2h:40"},
    {"budget", "", "MONEY", Kind::value, "Scaling", "", "the fastest size within it"},
    {"deadline", "", "TIME", Kind::value, "Scaling", "", "the cheapest size that is in time"},
    {"shares", "", "WHAT", Kind::value, "Scaling", "speed", "of a step's samples: equal, by speed"},
    {"spares", "", "N", Kind::value, "Scaling", "0", "workers kept ready, out of the world"},
    {"stragglers", "", "WHAT", Kind::value, "Scaling", "replace", "slow workers: off, report"},
    {"verify-state", "", "K|off", Kind::value, "Scaling", "5000", "steps to compare all state in"},
    {"max-restarts", "", "N", Kind::value, "Scaling", "", "failures in a row before giving up"},

    {"include", "", "LIST", Kind::value, "Hosts", "all", "only these: a,n[1-8],b:2"},
    {"exclude", "", "LIST", Kind::value, "Hosts", "", "all but these"},
    {"host-discovery", "", "PROGRAM", Kind::value, "Hosts", "", "prints the hosts; asked often"},
    {"join-key", "", "FILE", Kind::value, "Hosts", "", "write a key by which hosts may join"},
    {"user", "", "NAME", Kind::value, "Hosts", "", "account, where the file says none"},
    {"identity", "", "FILE", Kind::value, "Hosts", "", "private key for ssh"},
    {"ssh-port", "", "N", Kind::value, "Hosts", "", "of sshd, where the file says none"},
    {"ssh-config", "", "FILE", Kind::value, "Hosts", "~/.ssh/config", "as ssh -F"},
    {"known-hosts", "", "FILE", Kind::value, "Hosts", "", "keys of the hosts; always checked"},
    {"bind", "", "CIDR|NIC", Kind::value, "Hosts", "", "where agents dial in"},
    {"port", "", "N|A-B", Kind::value, "Hosts", "any", "likewise"},
    {"network", "", "CIDR|NIC", Kind::value, "Hosts", "", "where workers of several hosts meet"},
    {"backend", "", "NAME", Kind::value, "Hosts", "auto", "auto; gloo: CPUs; nccl: GPUs"},
    {"one-gpu-visible", "", "", Kind::toggle, "Hosts", "", "each worker sees its own GPU alone"},
    {"wrap", "", "COMMAND", Kind::value, "Hosts", "", "agents start inside it: numactl -N 0"},

    {"log-dir", "", "DIR", Kind::value, "Output", "", "a file per worker in DIR"},
    {"label", "", "WHAT", Kind::value, "Output", "host:rank", "before each line; or none"},
    {"quiet", "", "", Kind::toggle, "Output", "", "of our own lines only errors"},
    {"events", "", "FILE", Kind::value, "Output", "", "one JSON object a line"},
    {"explain", "", "", Kind::toggle, "Output", "", "print each decision and its reason"},

    {"dry-run", "", "", Kind::toggle, "Scripting", "", "print the plan, start nothing"},
    {"config", "", "FILE", Kind::value, "Scripting", "", "flags as TOML: max-batch = 256"},
    {"show-config", "", "", Kind::command, "Scripting", "", "each value and where it is from"},
    {"x", "-x", "NAME[=V]", Kind::list, "Scripting", "", "pass NAME to the workers; repeatable"},
    {"ship", "", "", Kind::toggle, "Scripting", "", "copy the program to hosts that lack it"},
    {"no-env", "", "", Kind::toggle, "Scripting", "", "pass only what -x names"},
    {"version", "", "", Kind::command, "Scripting", "", "print the version"},
    {"help", "-h", "", Kind::command, "Scripting", "", "print this"},
};

std::vector<Flag> with_deadlines() {
  std::vector<Flag> all;
  for (const Flag& flag : table) {
    if (flag.group == "Output" && all.back().group == "Hosts")
      for (const job::DeadlineRow& row : job::deadline_table)
        all.push_back({row.name, "", "TIME", Kind::value, "Deadlines", row.standard, row.meaning});
    all.push_back(flag);
  }
  return all;
}

}  // namespace

const std::vector<Flag>& flags() {
  static const std::vector<Flag> all = with_deadlines();
  return all;
}

const Flag* find_flag(std::string_view name) {
  const auto found = std::ranges::find(flags(), name, &Flag::name);
  return found == flags().end() ? nullptr : &*found;
}

std::string spelled(const Flag& flag) {
  return (flag.name.size() == 1 ? "-" : "--") + std::string(flag.name);
}

std::string environment_name(const Flag& flag) {
  std::string name = "ELASTICRUN_" + std::string(flag.name);
  std::ranges::transform(name, name.begin(), [](char c) {
    if (c == '-') return '_';
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return name;
}

}  // namespace elasticrun::cli
