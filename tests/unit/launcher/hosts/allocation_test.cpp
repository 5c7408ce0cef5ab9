// What the variables of batch systems say, as these systems write them.
#include "launcher/hosts/allocation.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace elasticrun;
using namespace elasticrun::launcher::hosts;

namespace {

// "job: name:slots name:slots(type)", or the error; "-": we are in no job.
std::string slurm(const Variables& environment) {
  const auto allocation = slurm_allocation(environment);
  if (!allocation) return allocation.error().text;
  if (!*allocation) return "-";
  std::string text = (*allocation)->job + ":";
  for (const Host& host : (*allocation)->hosts) {
    text += fmt::format(" {}:{}", host.name, host.slots);
    if (!host.type.empty()) text += fmt::format("({})", host.type);
  }
  return text;
}

Variables nodes(const std::string& list, Variables more = {}) {
  more.emplace("SLURM_JOB_ID", "7");
  more.emplace("SLURM_JOB_NODELIST", list);
  return more;
}

std::string repeated(std::string_view text) {
  const auto numbers = parse_repeated(text);
  return numbers ? fmt::format("{}", fmt::join(*numbers, " ")) : numbers.error().text;
}

}  // namespace

TEST_CASE("Slurm's rows of numbers") {
  CHECK(repeated("2") == "2");
  CHECK(repeated("2(x3)") == "2 2 2");
  CHECK(repeated("2(x3),1,4(x2)") == "2 2 2 1 4 4");
  const std::string why = " is no number with its count, as in 2(x3)";
  for (const char* bad : {"", "x", "2(x)", "2(x0)", "2(x-1)", "2(3)", "2x3", "-1", "2,"})
    CHECK(repeated(bad).ends_with(why));
  CHECK(repeated("1(x65537)") == "'1(x65537)'" + why);
}

TEST_CASE("nodes and slots of an allocation of Slurm") {
  CHECK(slurm({}) == "-");
  CHECK(slurm(nodes("node1")) == "7: node1:1");
  CHECK(slurm(nodes("node[1-2,4]", {{"SLURM_TASKS_PER_NODE", "2(x2),1"}})) ==
        "7: node1:2 node2:2 node4:1");
  CHECK(slurm(nodes("gpu[01-02],login1", {{"SLURM_TASKS_PER_NODE", "8(x3)"}})) ==
        "7: gpu01:8 gpu02:8 login1:8");
  SUBCASE("GPUs count before tasks") {
    const Variables tasks{{"SLURM_TASKS_PER_NODE", "64(x2)"}};
    for (const char* gpus : {"8", "a100:8", "a100:4,v100:4"}) {
      Variables more = tasks;
      more["SLURM_GPUS_PER_NODE"] = gpus;
      CHECK(slurm(nodes("n[1-2]", more)) == "7: n1:8 n2:8");
    }
    for (const char* name :
         {"SLURM_GPUS", "SLURM_JOB_GPUS", "SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_TASK"}) {
      Variables more = tasks;
      more[name] = "4";
      CHECK(slurm(nodes("n[1-2]", more)) == "7: n1:0 n2:0");
    }
  }
  SUBCASE("components of a heterogeneous job") {
    CHECK(slurm({{"SLURM_JOB_ID", "7"},
                 {"SLURM_HET_SIZE", "2"},
                 {"SLURM_JOB_NODELIST", "ignored"},
                 {"SLURM_JOB_NODELIST_HET_GROUP_0", "big[1-2]"},
                 {"SLURM_TASKS_PER_NODE_HET_GROUP_0", "4(x2)"},
                 {"SLURM_JOB_NODELIST_HET_GROUP_1", "small1,big2"},
                 {"SLURM_TASKS_PER_NODE_HET_GROUP_1", "1(x2)"}}) ==
          "7: big1:4(het0) big2:4(het0) small1:1(het1)");
  }
}

TEST_CASE(
    "variables of Slurm that make no sense, and several controllers, are refused in one line") {
  const std::string end = "; give the hosts by --hosts or -H";
  CHECK(slurm({{"SLURM_JOB_ID", "7"}}) ==
        "SLURM_JOB_NODELIST=: inside a job of Slurm it names the nodes" + end);
  CHECK(slurm(nodes("a[1-2]b[")) ==
        "SLURM_JOB_NODELIST=a[1-2]b[: '[' without ']'; write ranges as in n[01-16,20]" + end);
  CHECK(slurm(nodes("n[1-3]", {{"SLURM_TASKS_PER_NODE", "2(x2)"}})) ==
        "SLURM_TASKS_PER_NODE=2(x2): it is for 2 nodes, and there are 3" + end);
  CHECK(slurm(nodes("n1", {{"SLURM_HET_SIZE", "many"}})) ==
        "SLURM_HET_SIZE=many: that is no number of components" + end);
  CHECK(slurm(nodes("n1", {{"SLURM_STEP_NUM_TASKS", "1"}})) == "7: n1:1");
  CHECK(slurm(nodes("n1", {{"SLURM_STEP_NUM_TASKS", "4"}}))
            .starts_with("srun has started 4 tasks of elasticrun; start one"));
}

TEST_CASE("files of other batch systems") {
  const auto file = [](const Variables& environment) {
    const auto found = allocation_file(environment);
    return found ? found->variable + " " + found->path : "-";
  };
  CHECK(file({}) == "-");
  CHECK(file({{"PBS_NODEFILE", "/var/spool/pbs/aux/1.pbs"}, {"PBS_JOBID", "1.pbs"}}) ==
        "PBS_NODEFILE /var/spool/pbs/aux/1.pbs");
  CHECK(file({{"LSB_DJOB_HOSTFILE", "/home/u/.lsbatch/1"}, {"LSB_JOBID", "1"}}) ==
        "LSB_DJOB_HOSTFILE /home/u/.lsbatch/1");
  CHECK(file({{"PE_HOSTFILE", "/spool/1/pe_hostfile"}, {"JOB_ID", "1"}}) ==
        "PE_HOSTFILE /spool/1/pe_hostfile");
  CHECK(file({{"PBS_NODEFILE", "/left/over"}}) == "-");
}
