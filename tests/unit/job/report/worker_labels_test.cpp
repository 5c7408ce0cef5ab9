// Which worker a line of output belongs to, and when a worker has exited.
#include "job/report/worker_labels.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace elasticrun;
using namespace elasticrun::job;
using namespace elasticrun::job::report;

namespace {

std::vector<WorkerId> ids(const std::vector<WorkerLabel>& labels) {
  std::vector<WorkerId> found;
  for (const WorkerLabel& label : labels) found.push_back(label.worker);
  return found;
}

}  // namespace

TEST_CASE("worker labels") {
  constexpr HostId a{1}, b{2};
  WorkerLabels labels;
  for (std::uint32_t worker = 1; worker <= 4; ++worker)
    labels.started({WorkerId(worker), worker < 4 ? a : b, worker < 4 ? "a" : "b"});
  SUBCASE("a worker belongs to one host, and no other host can report about it") {
    CHECK(labels.find(a, WorkerId(1))->host_name == "a");
    CHECK_FALSE(labels.find(b, WorkerId(1)));
    CHECK_FALSE(labels.find(a, WorkerId(9)));
    CHECK(labels.exited(b, WorkerId(1)).empty());
    CHECK_FALSE(labels.find(a, WorkerId(1))->gone);
  }
  SUBCASE("its rank may change") {
    CHECK(labels.find(a, WorkerId(1))->rank == -1);
    labels.ranked(WorkerId(1), 3);
    labels.ranked(WorkerId(9), 4);
    CHECK(labels.find(a, WorkerId(1))->rank == 3);
  }
  SUBCASE("each worker exits once, by itself or with its host, and its output may still arrive") {
    CHECK(ids(labels.exited(a, WorkerId(2))) == std::vector{WorkerId(2)});
    CHECK(labels.exited(a, WorkerId(2)).empty());
    CHECK(labels.find(a, WorkerId(2))->gone);
    CHECK(ids(labels.host_gone(a)) == std::vector{WorkerId(1), WorkerId(3)});
    CHECK(labels.host_gone(a).empty());
    CHECK(labels.find(a, WorkerId(3))->gone);
    CHECK_FALSE(labels.find(b, WorkerId(4))->gone);
  }
}
