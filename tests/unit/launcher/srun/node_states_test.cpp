// The states of nodes, as sinfo prints them.
#include "launcher/srun/node_states.hpp"

#include <doctest/doctest.h>

using namespace elasticrun::launcher::srun;

TEST_CASE("nodes that are drained or fail will go") {
  const auto going = nodes_that_go(
      "n1 allocated none\n"
      "n2 draining bad fan, says smartd\n"
      "n2 draining bad fan, says smartd\n"  // in another partition
      "n3 drained* none\n"
      "n4 failing@\n"
      "n5 mixed- none\n"
      "n6 down* Not responding\n"
      "n7 idle~ none");
  REQUIRE(going.size() == 3);
  CHECK(going.at("n2") == "Slurm has it draining (bad fan, says smartd)");
  CHECK(going.at("n3") == "Slurm has it drained*");
  CHECK(going.at("n4") == "Slurm has it failing@");
}

TEST_CASE("when all nodes are drained, the job stays") {
  CHECK(nodes_that_go("n1 draining none\nn2 draining none\nn1 draining none\n").empty());
  CHECK(nodes_that_go("n1 draining none\nn2 mixed none\n").size() == 1);
}

TEST_CASE("what is no state of a node says nothing") {
  CHECK(nodes_that_go("").empty());
  CHECK(nodes_that_go("\n \n").empty());
  CHECK(nodes_that_go("slurm_load_node error: Unable to contact slurm controller").empty());
}
