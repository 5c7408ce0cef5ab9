// The help text of elasticrun, and the consistency of the table of flags.
#include <doctest/doctest.h>

#include <set>
#include <sstream>

#include "cli/flags.hpp"
#include "cli/text.hpp"
#include "job/deadlines.hpp"

using namespace elasticrun;
using namespace elasticrun::cli;

TEST_CASE("--help prints this text") {
  CHECK(help_text() == R"help(usage: elasticrun [options] program [args...]
Runs one training job on many hosts and changes their number while it runs.
Example: elasticrun --hosts hosts.txt --max-batch 1024 ./train

Common
      --hosts FILE                host file, read again when it changes
  -H, --host-list LIST            hosts inline: a:4,b:4 [this machine]
      --slots, --nproc-per-node N workers per host; auto: GPUs, else 1 [auto]
      --np, -np N                 workers, or their limits MIN:MAX [all slots]
      --max-batch B               largest global batch, in samples

Scaling
      --min-np N                  fewest workers [1]
      --max-np N                  most workers [all slots]
      --nnodes MIN:MAX            limits in hosts [all]
      --start N                   workers to begin with [all]
      --unit UNIT                 host or slot: what a change adds at least
      --batch b                   efficient batch of one worker
      --base-batch M              batch the learning rate was tuned for
      --lr-rule RULE              linear, sqrt, adascale or none [linear]
      --policy NAME               fixed, throughput, fit, exec:PROGRAM, ...
      --price P                   of a worker per hour, if its host has none [1]
      --utility LIST              what an end then is worth: 1h:100,2h:40
      --budget MONEY              the fastest size within it
      --deadline TIME             the cheapest size that is in time
      --shares WHAT               of a step's samples: equal, by speed [speed]
      --spares N                  workers kept ready, out of the world [0]
      --stragglers WHAT           slow workers: off, report [replace]
      --verify-state K|off        steps to compare all state in [5000]
      --max-restarts N            failures in a row before giving up

Hosts
      --include LIST              only these: a,n[1-8],b:2 [all]
      --exclude LIST              all but these
      --host-discovery PROGRAM    prints the hosts; asked often
      --join-key FILE             write a key by which hosts may join
      --user NAME                 account, where the file says none
      --identity FILE             private key for ssh
      --ssh-port N                of sshd, where the file says none
      --ssh-config FILE           as ssh -F [~/.ssh/config]
      --known-hosts FILE          keys of the hosts; always checked
      --bind CIDR|NIC             where agents dial in
      --port N|A-B                likewise [any]
      --network CIDR|NIC          where workers of several hosts meet
      --backend NAME              auto; gloo: CPUs; nccl: GPUs [auto]
      --one-gpu-visible           each worker sees its own GPU alone
      --wrap COMMAND              agents start inside it: numactl -N 0

Deadlines (TIME is a number with ms, s, m or h)
  --heartbeat [500ms] --agent-timeout [5s] --lease [10s] --abort-timeout [5s]
  --prepare-timeout [30s] --transfer-timeout [30s] --start-timeout [5m]
  --hung [10m] --epoch-timeout [2h] --grace [10s] --orphan-grace [10s]
  --settle [10s] --straggler-time [30s] --sample-interval [500ms]
  --minimum-timeout [10m] --discovery-interval [1s] --discovery-timeout [30s]
  --policy-timeout [5s]

Output
      --log-dir DIR               a file per worker in DIR
      --label WHAT                before each line; or none [host:rank]
      --quiet                     of our own lines only errors
      --events FILE               one JSON object a line
      --explain                   print each decision and its reason

Scripting
      --dry-run                   print the plan, start nothing
      --config FILE               flags as TOML: max-batch = 256
      --show-config               each value and where it is from
  -x NAME[=V]                     pass NAME to the workers; repeatable
      --ship                      copy the program to hosts that lack it
      --no-env                    pass only what -x names
      --version                   print the version
  -h, --help                      print this

Every flag is also a variable (ELASTICRUN_MAX_BATCH) and a key of --config. The
command line wins, then the environment, then the file. See man elasticrun.
)help");
}

TEST_CASE("the help text fits a terminal") {
  std::istringstream lines(help_text());
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    CHECK(line.size() <= 80);
    CHECK_FALSE(line.ends_with(' '));
  }
}

TEST_CASE("every spelling of a flag is unique") {
  std::set<std::string> names;
  for (const Flag& flag : flags()) {
    CAPTURE(flag.name);
    CHECK(names.insert(spelled(flag)).second);
    if (!flag.other.empty() && flag.other != spelled(flag))
      CHECK(names.insert(std::string(flag.other)).second);
    CHECK_FALSE(flag.help.empty());
    CHECK(flag.value.empty() == (flag.kind == Kind::toggle || flag.kind == Kind::command));
    CHECK(find_flag(flag.name) == &flag);
  }
  CHECK(find_flag("nothing") == nullptr);
}

TEST_CASE("each flag has a variable") {
  CHECK(environment_name(*find_flag("max-batch")) == "ELASTICRUN_MAX_BATCH");
  CHECK(environment_name(*find_flag("x")) == "ELASTICRUN_X");
}

TEST_CASE("the table of deadlines is consistent") {
  CHECK(job::deadline_mistake({}).empty());
  for (const job::DeadlineRow& row : job::deadline_table) {
    CAPTURE(row.name);
    const auto standard = parse_duration(row.standard);
    REQUIRE(standard.has_value());
    CHECK(*standard == job::Deadlines{}.*row.member);
    if (!row.shorter_than.empty()) CHECK(find_flag(row.shorter_than) != nullptr);
  }
  // Every member has a row, so no deadline can be added that cannot be set.
  CHECK(std::size(job::deadline_table) * sizeof(Duration) == sizeof(job::Deadlines));
}
