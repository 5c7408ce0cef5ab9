// What --dry-run prints: everything a user would want to check before a job costs money.
#include "cli/run/dry_run.hpp"

#include <doctest/doctest.h>

using namespace elasticrun;

namespace {

launcher::hosts::Host host(const char* name, int slots, bool spare = false) {
  launcher::hosts::Host made;
  made.name = name;
  made.slots = slots;
  made.spare = spare;
  return made;
}

}  // namespace

TEST_CASE("the plan of a job on several hosts") {
  job::JobSpec spec;
  spec.argv = {"./train", "--lr", "0.1"};
  spec.hosts = {host("a", 2), host("b", 1), host("c", 1, true)};
  spec.batch.max_batch = 80;
  spec.batch.batch = 32;
  spec.policy = "throughput";
  spec.start = 2;
  CHECK(cli::run::describe(spec) ==
        "command: ./train --lr 0.1\n"
        "policy: throughput, 1 to 3 workers, starting with 2\n"
        "rank 0: a slot 0\n"
        "rank 1: a slot 1\n"
        "spare: c slot 0\n"
        "size 2: global batch 64\n"
        "size 3: global batch 80\n");
}

TEST_CASE("without a batch the program decides it, and limits reduce the available slots") {
  job::JobSpec spec;
  spec.argv = {"true"};
  spec.hosts = {host("localhost", 0)};
  spec.default_slots = 4;
  spec.limits.max = 2;
  CHECK(cli::run::describe(spec) ==
        "command: true\n"
        "policy: fixed, 1 to 2 workers, starting with 2\n"
        "rank 0: localhost slot 0\n"
        "rank 1: localhost slot 1\n"
        "size 2: global batch as the program says\n");
  spec.slots_are_gpus = true;
  CHECK(cli::run::describe(spec).find("as many as GPUs there; 4 is a guess\n") !=
        std::string::npos);
  spec.limits = {.min = 6, .max = 6};
  CHECK(cli::run::describe(spec).find("6 to 6 workers, starting with 6\nrank 0: ") !=
        std::string::npos);
}
