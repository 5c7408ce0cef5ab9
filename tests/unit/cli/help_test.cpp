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
Runs one training job and changes its number of workers while it runs.
Example: elasticrun --hosts hosts.txt --max-batch 1024 ./train
         elasticrun -n 4 train.py, or -m module, is run by python3.

Common
      --hosts, --hostfile FILE    read hosts from FILE, again when it changes
  -H, --host-list LIST            use these hosts: a:4,b:4 [this machine]
      --slots, --nproc-per-node N run N workers a host; auto: one per GPU [auto]
  -n, -np, --np N                 run N workers, or MIN:MAX of them [all slots]
      --max-batch B               limit the global batch to B samples

Scaling
      --min-np N                  run at least N workers [1]
      --max-np N                  run at most N workers [all slots]
      --nnodes N|MIN:MAX          limit the number of hosts [all]
      --start N                   begin with N workers [all]
      --unit UNIT                 add and remove whole hosts, or slots
      --batch b                   set the efficient batch of one worker
      --base-batch M              set the batch the learning rate was tuned for
      --lr-rule RULE              use linear, sqrt, adascale or none [linear]
      --policy NAME               size the job by fixed, fit, exec:PROGRAM, ...
      --price P                   charge P for a worker and hour by default [1]
      --utility LIST              finish when it pays most: 1h:100,2h:40
      --budget MONEY              run at the fastest size that MONEY buys
      --deadline TIME             run at the cheapest size that ends in TIME
      --shares WHAT               share samples out by speed, or equal [speed]
      --spares N                  keep N workers ready outside the world [0]
      --stragglers WHAT           replace or report stragglers, or off [replace]
      --verify-state K|off        compare all state once in K steps [5000]
      --max-restarts N            tolerate N failures in a row (10; plain: 0)

Saving
      --save DIR                  save the state in DIR, and resume from it
      --save-every TIME           also save while the job runs, every TIME
      --stop-signal SIG           stop at SIG, too [inside Slurm: USR1]
      --time-limit TIME           save, stop before TIME [inside Slurm: its own]

Hosts
      --include LIST              use only these: a,n[1-8],b:2 [all]
      --exclude LIST              use all hosts but these
      --host-discovery PROGRAM    ask PROGRAM for the hosts, again and again
      --slurm-grow OPTIONS        ask Slurm for more: --array=1-4 -t 60 ...
      --slurm-shrink TIME         give nodes back that are unused for TIME
      --join-key FILE             write a key with which hosts may join
      --user NAME                 log in as NAME where no user is given
      --identity FILE             use this private key for ssh
      --ssh-port N                reach sshd at port N where none is given
      --ssh-config FILE           read FILE as ssh -F does [~/.ssh/config]
      --known-hosts FILE          check the hosts' keys against FILE
      --bind CIDR|NIC             listen for agents at this address
      --port N|A-B                listen for agents at this port [any]
      --network CIDR|NIC          connect workers of several hosts over this
      --backend NAME              reduce with gloo (CPUs) or nccl (GPUs) [auto]
      --one-gpu-visible           show each worker its own GPU alone
      --notice COMMAND            leave a host where COMMAND ends with 0
      --wrap COMMAND              start agents inside COMMAND: numactl -N 0

Deadlines (TIME is a number with ms, s, m or h)
  --heartbeat [500ms] --agent-timeout [5s] --lease [10s]
  --standstill-timeout [1h] --abort-timeout [5s] --prepare-timeout [30s]
  --transfer-timeout [30s] --start-timeout [5m] --hung [10m]
  --epoch-timeout [2h] --grace [10s] --orphan-grace [10s] --settle [10s]
  --straggler-time [30s] --sample-interval [500ms] --minimum-timeout [10m]
  --discovery-interval [1s] --discovery-timeout [30s] --policy-timeout [5s]
  --save-timeout [10m]

Output
      --log-dir DIR               write two files per worker in DIR
  -r, --redirects STREAMS         write these to DIR only: 1, 2, 3 or 0:3,1:2
  -t, --tee STREAMS               write these to DIR and show them, too
      --local-ranks-filter LIST   show lines of these local ranks: 0,1 [all]
      --label WHAT                label lines by host:rank, or none [host:rank]
      --quiet                     print only errors of elasticrun itself
      --events FILE               append events to FILE, a JSON object a line
      --explain                   print each decision and its reason

Scripting
      --dry-run                   print the plan and start nothing
      --config FILE               read flags from FILE (TOML): max-batch = 256
      --show-config               print each value and where it is from
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
  for (const Flag& flag : flags) {
    CAPTURE(flag.name);
    for (const std::string& one : spellings(flag)) CHECK(names.insert(one).second);
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
  CHECK(job::check({}).has_value());
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
