// When a host counts as unused, which go together, and what a refusal means.
#include "job/core/hosts/unused_hosts.hpp"

#include <doctest/doctest.h>

using namespace elasticrun;
using namespace std::chrono_literals;
using job::hosts::UnusedHosts;
using Ids = std::vector<HostId>;

namespace {

constexpr HostId a{1}, b{2}, c{3};
constexpr Time begin{1h};

}  // namespace

TEST_CASE("a host is given back once, when it was unused all the time") {
  UnusedHosts unused(60s);
  unused.look({a, b}, {a, b}, begin);
  CHECK(unused.wake_at() == never);
  unused.look({a, b}, {a}, begin);
  CHECK(unused.wake_at() == begin + 60s);
  CHECK(unused.take(begin + 59s).empty());
  unused.look({a, b}, {a, b}, begin + 59s);  // a worker is wanted there after all
  unused.look({a, b}, {a}, begin + 60s);
  CHECK(unused.take(begin + 119s).empty());
  CHECK(unused.take(begin + 120s) == Ids{b});
  unused.look({a, b}, {a}, begin + 120s);
  CHECK(unused.wake_at() == never);
}

TEST_CASE("those that are unused for half the time go along") {
  UnusedHosts unused(60s);
  unused.look({a, b, c}, {b, c}, begin);
  unused.look({a, b, c}, {c}, begin + 30s);
  unused.look({a, b, c}, {}, begin + 31s);
  CHECK(unused.take(begin + 60s) == Ids{a, b});
  CHECK(unused.wake_at() == begin + 91s);
}

TEST_CASE("a refusal is no reason to ask again soon") {
  UnusedHosts unused(60s);
  unused.look({a, b}, {}, begin);
  CHECK(unused.take(begin + 60s) == Ids{a, b});
  unused.refused(b, begin + 61s);
  unused.look({b}, {}, begin + 61s);
  CHECK(unused.wake_at() == begin + 61s + 10min);
  CHECK(unused.take(begin + 200s).empty());
  CHECK(unused.take(begin + 61s + 10min) == Ids{b});
}

TEST_CASE("a host that was given back and comes again is given back again") {
  UnusedHosts unused(60s);
  unused.look({a, b}, {a}, begin);
  CHECK(unused.take(begin + 60s) == Ids{b});
  unused.came(b);
  unused.look({a, b}, {a, b}, begin + 90s);
  unused.look({a, b}, {a}, begin + 100s);
  CHECK(unused.take(begin + 159s).empty());
  CHECK(unused.take(begin + 160s) == Ids{b});
}

TEST_CASE("a host that is free is given back at once, and after a refusal not soon") {
  UnusedHosts unused(60s);
  unused.look({a}, {a}, begin, {b});
  CHECK(unused.wake_at() == begin);
  CHECK(unused.take(begin) == Ids{b});
  unused.refused(b, begin + 1s);
  unused.look({a}, {a}, begin + 1s, {b});
  CHECK(unused.wake_at() == begin + 1s + 10min);
  unused.came(b);
  unused.look({a, b}, {a, b}, begin + 2s);
  CHECK(unused.wake_at() == never);
}
