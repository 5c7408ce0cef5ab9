// torchrun's variables for worlds of several shapes, and which variables of the caller are passed
// on.
#include "launcher/machine/environment.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace elasticrun::launcher::hosts;
using namespace elasticrun;
using namespace elasticrun::launcher::machine;
using Entries = std::vector<std::string>;

namespace {

const std::vector<Slot> world{{HostId(0), "a", 0}, {HostId(0), "a", 1}, {HostId(7), "b", 0}};

Place place(int rank, const std::vector<Slot>& slots = world) {
  return places_of(slots)[static_cast<std::size_t>(rank)];
}

JobFacts facts() {
  return {.job_id = "j1",
          .host_name = "a",
          .master_address = "10.0.0.1",
          .master_port = 29400,
          .restart_count = 1,
          .max_restarts = 3,
          .generation = Generation(5),
          .max_batch = 256};
}

bool has(const Entries& entries, const std::string& entry) {
  return std::ranges::find(entries, entry) != entries.end();
}

std::string names(const Entries& entries) {
  std::string text;
  for (const auto& entry : entries) text += entry + ' ';
  return text;
}

}  // namespace

TEST_CASE("the agent adds what only its host knows") {
  const HostFacts here{.socket = "/s",
                       .worker = WorkerId(4),
                       .address = "10.0.0.2",
                       .interface = "eth1",
                       .error_file = "/e",
                       .progress_fd = 4};
  CHECK(with_host({"A=1", "ELASTICRUN_SOCKET=/other"}, here) ==
        Entries{"A=1", "ELASTICRUN_ADDRESS=10.0.0.2", "ELASTICRUN_PROGRESS_FD=4",
                "ELASTICRUN_SOCKET=/s", "ELASTICRUN_WORKER=4", "NCCL_SOCKET_IFNAME==eth1",
                "TORCHELASTIC_ERROR_FILE=/e"});
  CHECK(has(with_host({"NCCL_SOCKET_IFNAME=ib"}, here), "NCCL_SOCKET_IFNAME=ib"));
  CHECK(with_host({}, {.socket = "/s", .worker = WorkerId(4), .address = "x"}).size() == 5);
}

TEST_CASE("the backend is passed only when it is given") {
  JobFacts said = facts();
  CHECK(names(worker_environment(place(0), said, {})).find("BACKEND") == std::string::npos);
  said.backend = "nccl";
  CHECK(has(worker_environment(place(0), said, {}), "ELASTICRUN_BACKEND=nccl"));
}

TEST_CASE("the whole environment of one worker") {
  CHECK(worker_environment(place(1), facts(), Entries{"PATH=/bin", "RANK=9"}) ==
        Entries{"ELASTICRUN_GENERATION=5",
                "ELASTICRUN_HOST=a",
                "ELASTICRUN_JOB_ID=j1",
                "ELASTICRUN_MAX_BATCH=256",
                "ELASTICRUN_SLOT=1",
                "GROUP_RANK=0",
                "GROUP_WORLD_SIZE=2",
                "LOCAL_RANK=1",
                "LOCAL_WORLD_SIZE=2",
                "MASTER_ADDR=10.0.0.1",
                "MASTER_PORT=29400",
                "OMP_NUM_THREADS=1",
                "PATH=/bin",
                "RANK=1",
                "ROLE_NAME=default",
                "ROLE_RANK=1",
                "ROLE_WORLD_SIZE=3",
                "TORCHELASTIC_MAX_RESTARTS=3",
                "TORCHELASTIC_RESTART_COUNT=1",
                "TORCHELASTIC_RUN_ID=j1",
                "TORCH_NCCL_ASYNC_ERROR_HANDLING=1",
                "WORLD_SIZE=3"});
}

TEST_CASE("variables of the account come from the worker's host, unless they were passed") {
  const std::vector<std::string> there = {"HOME=/home/b", "USER=b", "PATH=/bin", "SECRET=x"};
  CHECK(with_account({"A=1", "PATH=/opt"}, there) ==
        std::vector<std::string>{"A=1", "HOME=/home/b", "PATH=/opt", "USER=b"});
}

TEST_CASE("local ranks and groups follow the places in a world") {
  struct Row {
    int rank;
    const char* local_rank;
    const char* local_size;
    const char* group;
  };
  const Row rows[] = {
      {0, "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=2", "GROUP_RANK=0"},
      {1, "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "GROUP_RANK=0"},
      {2, "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=1", "GROUP_RANK=1"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.rank);
    const auto env = worker_environment(place(row.rank), facts(), {});
    CHECK(has(env, row.local_rank));
    CHECK(has(env, row.local_size));
    CHECK(has(env, row.group));
  }
  // Here the ranks do not follow the slots, as after a replacement; local ranks still do.
  const std::vector<Slot> mixed{{HostId(0), "a", 1}, {HostId(1), "b", 0}, {HostId(0), "a", 0}};
  CHECK(has(worker_environment(place(0, mixed), facts(), {}), "LOCAL_RANK=1"));
  CHECK(has(worker_environment(place(2, mixed), facts(), {}), "LOCAL_RANK=0"));
  CHECK(has(worker_environment(place(2, mixed), facts(), {}), "GROUP_RANK=0"));
}

TEST_CASE("threads are limited only where workers share a host and the user has set no limit") {
  CHECK(has(worker_environment(place(0), facts(), {}), "OMP_NUM_THREADS=1"));
  CHECK(has(worker_environment(place(0), facts(), Entries{"OMP_NUM_THREADS=8"}),
            "OMP_NUM_THREADS=8"));
  CHECK(names(worker_environment(place(2), facts(), {})).find("OMP") == std::string::npos);
}

TEST_CASE("without a largest batch there is no variable for it") {
  JobFacts none = facts();
  none.max_batch = 0;
  CHECK(names(worker_environment(place(0), none, {})).find("MAX_BATCH") == std::string::npos);
}

TEST_CASE("some of the caller's environment is passed on") {
  const Entries caller{"PATH=/bin",
                       "HOME=/root",
                       "SSH_AUTH_SOCK=/x",
                       "DISPLAY=:0",
                       "NCCL_DEBUG=INFO",
                       "TMPDIR=/t",
                       "HOSTNAME=n1",
                       "EMPTY=",
                       "ELASTICRUN_SLOT=3",
                       "PATH=/second",
                       "junk",
                       "=x",
                       "TORCHELASTIC_USE_AGENT_STORE=True",
                       "XDG_SESSION_ID=4",
                       "SLURM_PROCID=0",
                       "SLURM_NODEID=0"};
  struct Row {
    EnvironmentRules rules;
    bool same_machine;
    Entries passed;
  };
  const Row rows[] = {
      {{}, false, {"EMPTY=", "NCCL_DEBUG=INFO", "PATH=/bin"}},
      {{},
       true,
       {"DISPLAY=:0", "EMPTY=", "HOME=/root", "HOSTNAME=n1", "NCCL_DEBUG=INFO", "PATH=/bin",
        "SLURM_NODEID=0", "SSH_AUTH_SOCK=/x", "TMPDIR=/t", "XDG_SESSION_ID=4"}},
      {{.extra = {"HOME", "A=1=2", "PATH=/mine"}},
       false,
       {"A=1=2", "EMPTY=", "HOME=/root", "NCCL_DEBUG=INFO", "PATH=/mine"}},
      {{.none = true}, true, {}},
      {{.none = true, .extra = {"PATH", "B="}}, true, {"B=", "PATH=/bin"}},
  };
  for (const Row& row : rows) {
    const auto passed = passed_environment(caller, row.rules, row.same_machine);
    REQUIRE(passed.has_value());
    CHECK(names(*passed) == names(row.passed));
  }
}

TEST_CASE("a variable to pass that is not set is an error") {
  const auto missing = passed_environment(Entries{"A=1"}, {.extra = {"B"}}, true);
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().text == "-x B: B is not set here; set it, or write -x B=VALUE");
  const auto nameless = passed_environment(Entries{"A=1"}, {.extra = {"=1"}}, true);
  REQUIRE_FALSE(nameless.has_value());
  CHECK(nameless.error().text == "-x =1: there is no name; write -x NAME=VALUE");
}

TEST_CASE("every denied name has a reason") {
  for (const auto& one : denied_on_other_machines()) CHECK(one.reason.size() > 5);
}

TEST_CASE("visible GPUs are those of the host, unless the caller names them with -x") {
  const Entries passed{"CUDA_VISIBLE_DEVICES=7"};
  JobFacts told = facts();
  CHECK(has(worker_environment(place(0), told, passed), "CUDA_VISIBLE_DEVICES=7"));
  CHECK(names(worker_environment(place(0), told, {})).find("GPU") == std::string::npos);
  told.gpus = {"GPU-a"};
  CHECK(has(worker_environment(place(0), told, passed), "CUDA_VISIBLE_DEVICES=GPU-a"));
  CHECK(has(worker_environment(place(0), told, passed), "ELASTICRUN_GPU=GPU-a"));
  // The slot of rank 1 has no GPU.
  const Entries without = worker_environment(place(1), told, {});
  CHECK(has(without, "CUDA_VISIBLE_DEVICES=GPU-a"));
  CHECK(names(without).find("ELASTICRUN_GPU") == std::string::npos);
  told.one_gpu_visible = true;
  CHECK(has(worker_environment(place(1), told, {}), "CUDA_VISIBLE_DEVICES="));
  told.gpus = {"GPU-a", "GPU-b"};
  CHECK(has(worker_environment(place(1), told, {}), "CUDA_VISIBLE_DEVICES=GPU-b"));
  EnvironmentRules rules;
  rules.extra = {"CUDA=1", "CUDA_VISIBLE_DEVICES=2,3"};
  CHECK(names(rules, "CUDA_VISIBLE_DEVICES"));
  CHECK_FALSE(names(rules, "CUDA_VISIBLE"));
  rules.extra = {"CUDA_VISIBLE_DEVICES"};
  CHECK(names(rules, "CUDA_VISIBLE_DEVICES"));
  // GPUs that are hidden on the host stay hidden.
  CHECK(with_account({"A=1"}, Entries{"CUDA_VISIBLE_DEVICES="}) ==
        Entries{"A=1", "CUDA_VISIBLE_DEVICES="});
}
