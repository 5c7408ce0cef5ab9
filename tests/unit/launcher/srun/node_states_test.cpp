// The states of nodes, as sinfo prints them.
#include "launcher/srun/node_states.hpp"

#include <doctest/doctest.h>

using namespace elasticrun::launcher::srun;

TEST_CASE("nodes that are drained or fail will go") {
  const auto news = node_news(
      "n1 allocated none\n"
      "n2 draining bad fan, says smartd\n"
      "n2 draining bad fan, says smartd\n"  // in another partition
      "n3 drained* none\n"
      "n4 failing@\n"
      "n5 mixed- none\n"
      "n6 down* Not responding\n"
      "n7 idle~ none",
      {});
  REQUIRE(news.go.size() == 3);
  CHECK(news.go.at("n2") == "Slurm has it draining (bad fan, says smartd)");
  CHECK(news.go.at("n3") == "Slurm has it drained*");
  CHECK(news.go.at("n4") == "Slurm has it failing@");
  CHECK(news.stay.empty());
}

TEST_CASE("a node is reported once when it is drained, and once when it is resumed") {
  const std::set<std::string> going = {"n2", "n3", "n4", "n5"};
  const auto news = node_news(
      "n1 mixed none\nn2 draining fan\nn3 mixed+ none\nn4 mixed* none\nn5 down* off\n", going);
  CHECK(news.go.empty());
  REQUIRE(news.stay.size() == 1);
  CHECK(news.stay.at("n3") == "Slurm has it mixed+");
}

TEST_CASE("a node that the job no longer has is not resumed") {
  const auto news = node_news("n1 mixed none\n", {"n2"});
  CHECK(news.go.empty());
  CHECK(news.stay.empty());
}

TEST_CASE("if all nodes are drained, the job stays on them") {
  CHECK(node_news("n1 draining none\nn2 draining none\nn1 draining none\n", {}).go.empty());
  CHECK(node_news("n1 draining none\nn2 mixed none\n", {}).go.size() == 1);
  const auto news = node_news("n1 draining none\nn2 draining none\n", {"n2"});
  CHECK(news.go.empty());
  CHECK(news.stay.empty());
}

TEST_CASE("a line that names no state is ignored") {
  for (const char* lines :
       {"", "\n \n", "slurm_load_node error: Unable to contact slurm controller"}) {
    CHECK(node_news(lines, {"n1"}).go.empty());
    CHECK(node_news(lines, {"n1"}).stay.empty());
  }
}
