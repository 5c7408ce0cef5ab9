// Similar troubles of many hosts are reported in one line; any other trouble has its own line.
#include "job/core/hosts/troubles.hpp"

#include <doctest/doctest.h>

using namespace elasticrun;
using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

namespace {
const Time start = Time(1h);
}

TEST_CASE("a trouble waits a moment for similar ones") {
  job::hosts::Troubles troubles;
  CHECK(troubles.wake_at() == never);
  troubles.add("n1", "connect: 10.0.0.1:22 refuses", start);
  CHECK(troubles.wake_at() == start + 300ms);
  troubles.add("n2", "connect: 10.0.0.2:22 refuses", start + 200ms);
  CHECK(troubles.tell(start + 299ms).empty());
  CHECK(troubles.tell(start + 300ms) ==
        Lines{"n[1-2] (2 hosts), n1 for one: connect: 10.0.0.1:22 refuses"});
  CHECK(troubles.wake_at() == never);
  CHECK(troubles.tell(start + 1s, true).empty());
}

TEST_CASE("troubles are similar if they differ only in names, fingerprints and attempts") {
  struct Case {
    const char* first;   // reported for host alpha
    const char* second;  // reported for host beta
    bool alike;
  };
  const Case cases[] = {
      {"login: denied", "login: denied", true},
      {"try 'ssh alpha true'", "try 'ssh beta true'", true},
      {"it shows SHA256:abc1", "it shows SHA256:def2", true},
      {"late (2 attempts)", "late (12 attempts)", true},
      {"login: denied", "login: broken", false},
      {"connect: refused", "connect: refused; try again", false},
  };
  for (const Case& one : cases) {
    CAPTURE(one.first);
    job::hosts::Troubles troubles;
    troubles.add("alpha", one.first, start);
    troubles.add("beta", one.second, start);
    CHECK(troubles.tell(start, true).size() == (one.alike ? 1 : 2));
  }
}

TEST_CASE("a host that is tried repeatedly reports the same trouble once, until it works") {
  job::hosts::Troubles troubles;
  troubles.add("n1", "no route (2 attempts)", start);
  troubles.add("n1", "no route (3 attempts)", start);
  CHECK(troubles.tell(start, true) == Lines{"n1: no route (2 attempts)"});
  troubles.add("n1", "no route (3 attempts)", start + 4s);
  CHECK(troubles.tell(start + 4s, true).empty());
  troubles.add("n1", "refused", start + 8s);
  CHECK(troubles.tell(start + 8s, true) == Lines{"n1: refused"});
  troubles.over("n1");
  troubles.add("n1", "refused", start + 16s);
  CHECK(troubles.tell(start + 16s, true).size() == 1);
}
