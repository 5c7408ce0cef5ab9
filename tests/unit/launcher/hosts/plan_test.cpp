// Slots in rank order, sizes within limits, and host numbers when the host file changes.
#include "launcher/hosts/plan.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "launcher/machine/machine.hpp"

using namespace elasticrun;
using namespace elasticrun::launcher::hosts;
using namespace elasticrun::launcher::machine;

namespace {

std::vector<Host> hosts_of(const char* list) {
  const auto hosts = parse_host_list(list, "test");
  REQUIRE(hosts.has_value());
  return *hosts;
}

std::string text_of(const std::vector<Slot>& slots) {
  std::string text;
  for (const Slot& slot : slots)
    text += fmt::format("{}{}={}.{}", text.empty() ? "" : " ", slot.host.value, slot.host_name,
                        slot.slot);
  return text;
}

}  // namespace

TEST_CASE("the plan follows the order of the file, and spares are separate") {
  HostBook book;
  const Plan plan = make_plan(hosts_of("b:2,a,s:1 spare,c:1"), 2, book);
  CHECK(text_of(plan.slots) == "0=b.0 0=b.1 1=a.0 1=a.1 3=c.0");
  CHECK(text_of(plan.spares) == "2=s.0");
  CHECK(plan.slots_by_host == std::vector{2, 2, 1});
  const Plan priced = make_plan(hosts_of("b:4 price=6,a:1"), 2, book);
  CHECK(priced.slots.front().price == 1.5);
  CHECK(priced.slots.back().price == 0);
}

TEST_CASE("a host keeps its number when the file changes") {
  HostBook book;
  make_plan(hosts_of("a,b"), 1, book);
  CHECK(text_of(make_plan(hosts_of("c,b"), 1, book).slots) == "2=c.0 1=b.0");
  CHECK(text_of(make_plan(hosts_of("a"), 1, book).slots) == "0=a.0");
}

TEST_CASE("sizes follow from hosts, unit, limits and start") {
  struct Row {
    std::vector<int> hosts;
    Unit unit;
    Limits limits;
    int start;
    std::vector<int> sizes;
  };
  const Row rows[] = {
      {{4, 4}, Unit::host, {}, 0, {4, 8}},
      {{2, 4, 1}, Unit::host, {}, 0, {2, 6, 7}},
      {{4}, Unit::slot, {}, 0, {1, 2, 3, 4}},
      {{2, 2}, Unit::slot, {.min = 2, .max = 3}, 0, {2, 3}},
      {{4, 4}, Unit::host, {.min = 4, .max = 6}, 0, {4, 6}},
      {{4, 4}, Unit::host, {.min = 5}, 0, {8}},
      {{4, 4}, Unit::host, {}, 1, {1, 4, 8}},
      {{4, 4}, Unit::host, {.min = 2}, 1, {4, 8}},
      {{4, 4}, Unit::host, {.min = 1, .max = 100}, 0, {4, 8}},
      {{4, 4, 4}, Unit::host, {.max_hosts = 2}, 0, {4, 8}},
      {{4, 4, 4}, Unit::host, {.min_hosts = 2}, 0, {8, 12}},
      {{2, 2, 2}, Unit::slot, {.min_hosts = 2, .max_hosts = 2}, 0, {3, 4}},
      {{4}, Unit::host, {.min_hosts = 2}, 0, {}},
      {{4}, Unit::host, {.min = 5}, 0, {}},
      {{}, Unit::host, {}, 0, {}},
  };
  for (const Row& row : rows) {
    CAPTURE(fmt::format("{}", row.hosts));
    CHECK(reachable_sizes(row.hosts, row.unit, row.limits, row.start) == row.sizes);
  }
}

TEST_CASE("this machine knows its names and its working directory") {
  const Machine machine = this_machine();
  CHECK_FALSE(machine.cwd.empty());
  bool loopback = false;
  for (const auto& name : machine.own.names) loopback = loopback || name == "127.0.0.1";
  CHECK(loopback);
}

TEST_CASE("slots of the first hosts are counted") {
  CHECK(slots_within({4, 2, 8}, 0) == 14);
  CHECK(slots_within({4, 2, 8}, 1) == 4);
  CHECK(slots_within({4, 2, 8}, 2) == 6);
  CHECK(slots_within({4, 2, 8}, 9) == 14);
  CHECK(slots_within({}, 2) == 0);
}
