// Whose output it is, and when a worker has exited.
#include "job/report/worker_labels.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace elasticrun;
using namespace elasticrun::job;
using namespace elasticrun::job::report;

namespace {

std::vector<WorkerId> ids(const std::vector<WorkerLabel>& speakers) {
  std::vector<WorkerId> found;
  for (const WorkerLabel& speaker : speakers) found.push_back(speaker.worker);
  return found;
}

}  // namespace

TEST_CASE("speakers") {
  constexpr HostId a{1}, b{2};
  WorkerLabels speakers;
  for (std::uint32_t worker = 1; worker <= 4; ++worker)
    speakers.started({WorkerId(worker), worker < 4 ? a : b, worker < 4 ? "a" : "b"});
  SUBCASE("a worker is of one host, and no other host speaks for it") {
    CHECK(speakers.find(a, WorkerId(1))->host_name == "a");
    CHECK_FALSE(speakers.find(b, WorkerId(1)));
    CHECK_FALSE(speakers.find(a, WorkerId(9)));
    CHECK(speakers.exited(b, WorkerId(1)).empty());
    CHECK_FALSE(speakers.find(a, WorkerId(1))->gone);
  }
  SUBCASE("its rank may change") {
    CHECK(speakers.find(a, WorkerId(1))->rank == -1);
    speakers.ranked(WorkerId(1), 3);
    speakers.ranked(WorkerId(9), 4);
    CHECK(speakers.find(a, WorkerId(1))->rank == 3);
  }
  SUBCASE("each exits once, by itself or with its host, and may still be heard") {
    CHECK(ids(speakers.exited(a, WorkerId(2))) == std::vector{WorkerId(2)});
    CHECK(speakers.exited(a, WorkerId(2)).empty());
    CHECK(speakers.find(a, WorkerId(2))->gone);
    CHECK(ids(speakers.host_gone(a)) == std::vector{WorkerId(1), WorkerId(3)});
    CHECK(speakers.host_gone(a).empty());
    CHECK(speakers.find(a, WorkerId(3))->gone);
    CHECK_FALSE(speakers.find(b, WorkerId(4))->gone);
  }
}
