// What an agent reports of a worker whose process dies (net/lifeline.hpp).
#include <doctest/doctest.h>

#include <csignal>

#include "core_host.hpp"

namespace elasticrun::launcher::agent {
namespace {

TEST_CASE("a worker that dies is reported, unless the agent kills it, or it has ended") {
  Host host;
  host.runs(1);
  CHECK(host.at(1s, ProcessDies{WorkerId{1}, 3, 0}) == "dies 1 3/0");
  CHECK(host.at(1s, ProcessExited{WorkerId{1}, 3, 0}) == "exited 1 3/0");
  CHECK(host.at(1s, ProcessDies{WorkerId{1}, 3, 0}) == "");
  CHECK(host.at(1s, ProcessDies{WorkerId{9}, 3, 0}) == "");
  host.runs(2);
  CHECK(host.at(2s, Host::stop(2, 0s)) == "kill 2");
  CHECK(host.at(2s, ProcessDies{WorkerId{2}, 0, 9}) == "");
  CHECK(host.at(2s, ProcessExited{WorkerId{2}, 0, 9}) == "exited 2 0/9");
  host.runs(4);
  for (const int asked : {SIGTERM, SIGINT, SIGHUP})
    CHECK(host.at(2s, ProcessDies{WorkerId{4}, 0, asked}) == "");
  CHECK(host.at(2s, ProcessExited{WorkerId{4}, 0, 15}) == "exited 4 0/15");
  host.runs(3);
  CHECK(host.at(3s, Terminated{}) == "signal 3 15");
  CHECK(host.at(3s, ProcessDies{WorkerId{3}, 1, 0}) == "");
}

}  // namespace
}  // namespace elasticrun::launcher::agent
