// Which hosts the job has: hosts that were given, have joined, left or come back; and the address
// of rank 0.
#include "job/core/hosts/roster.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace elasticrun;
using job::hosts::Roster;

namespace {

launcher::hosts::Host host(const char* name, int slots) {
  launcher::hosts::Host host;
  host.name = name;
  host.slots = slots;
  return host;
}
wire::Hello hello(const char* name, int slots) {
  wire::Hello hello;
  hello.host = no_host;
  hello.name = name;
  hello.slots = slots;
  return hello;
}
std::vector<std::string> names(Roster& roster) {
  std::vector<std::string> names;
  for (const auto& slot : roster.plan().slots) names.push_back(slot.host_name);
  return names;
}

}  // namespace

TEST_CASE("a host that will go has no slots until it has gone") {
  Roster roster;
  roster.give({host("a", 2), host("b", 1)});
  const HostId b = roster.plan().slots.back().host;
  CHECK(roster.leaves(b));
  CHECK_FALSE(roster.leaves(b));
  CHECK_FALSE(roster.leaves(HostId(7)));
  CHECK(roster.plan().slots_by_host == std::vector<int>{2});
  CHECK(roster.down(b) == Roster::News::slots);
  CHECK(roster.plan().slots_by_host == std::vector<int>{2, 1});
  CHECK(roster.leaves(b));
}

TEST_CASE("a host that is given no longer is dropped until it is given again, or joins") {
  Roster roster;
  CHECK(roster.dropped().empty());
  roster.give({host("a", 1), host("b", 1)});
  roster.give({host("a", 1)});
  CHECK(roster.dropped() == std::set<HostId>{HostId(1)});
  roster.give({host("b", 1)});
  CHECK(roster.dropped() == std::set<HostId>{HostId(0)});
  const auto joins = roster.admit(hello("a", 1));
  REQUIRE(joins.has_value());
  CHECK(*joins == HostId(0));
  CHECK(roster.up(*joins, hello("a", 1)) == Roster::News::slots);  // the core must know at once
  CHECK(roster.dropped().empty());
  CHECK(names(roster) == std::vector<std::string>{"b", "a"});
  roster.down(*joins);
  CHECK(roster.dropped().empty());
}

TEST_CASE("a drained host is dropped until it is resumed, whatever becomes of its agent") {
  Roster roster;
  roster.give({host("a", 1), host("b", 2)});
  REQUIRE(roster.given("b").has_value());
  const HostId b = *roster.given("b");
  CHECK_FALSE(roster.given("c").has_value());
  roster.drain(b);
  CHECK(roster.dropped() == std::set<HostId>{b});
  CHECK(roster.plan().slots_by_host == std::vector<int>{1});
  roster.down(b);
  roster.give_back(b);
  roster.keep(b);  // Slurm does not take it
  CHECK(roster.plan().slots_by_host == std::vector<int>{1});
  roster.resume(b);
  CHECK(roster.dropped().empty());
  CHECK(roster.plan().slots_by_host == std::vector<int>{1, 2});
}

TEST_CASE("a host that joins comes last, and only once its agent is up") {
  Roster roster;
  roster.give({host("a", 1), host("b", 1)});
  const auto number = roster.admit(hello("c", 2));
  REQUIRE(number.has_value());
  CHECK(*number == HostId(2));
  CHECK(names(roster) == std::vector<std::string>{"a", "b"});
  CHECK(roster.up(*number, hello("c", 2)) == Roster::News::joined);
  CHECK(roster.admit(hello("c", 2)).has_error());
  CHECK(names(roster) == std::vector<std::string>{"a", "b", "c", "c"});
  CHECK(roster.down(*number) == Roster::News::joined);
  CHECK(roster.down(*number) == Roster::News::none);
  CHECK(names(roster) == std::vector<std::string>{"a", "b"});
  CHECK(roster.name(*number) == "c");
  CHECK(*roster.admit(hello("c", 2)) == *number);
}

TEST_CASE("names and types are reported once, and again when they are given again") {
  const auto told = [](Roster& roster) {
    std::string text;
    for (const job::HostsMet::Host& host : roster.take_met().hosts)
      text += fmt::format("{} {} {};", host.host.value, host.name, host.type);
    return text;
  };
  Roster roster;
  launcher::hosts::Host fast = host("a", 1);
  fast.type = "fast";
  roster.give({fast, host("b", 1)});
  CHECK(told(roster) == "0 a fast;1 b ;");
  CHECK(told(roster) == "");
  fast.type = "slow";
  roster.give({fast});
  CHECK(told(roster) == "0 a slow;");
  const auto joined = roster.admit(hello("c", 2));
  CHECK(told(roster) == "");
  (void)roster.up(*joined, hello("c", 2));
  CHECK(told(roster) == "2 c ;");
}

TEST_CASE("the agent of a given host neither adds nor removes a host") {
  Roster roster;
  roster.give({host("a", 1)});
  CHECK(roster.up(HostId(0), wire::Hello{}) == Roster::News::none);
  CHECK(roster.down(HostId(0)) == Roster::News::none);
  CHECK(names(roster) == std::vector<std::string>{"a"});
  roster.give({host("b", 1)});
  CHECK(names(roster) == std::vector<std::string>{"b"});
  CHECK(roster.name(HostId(0)) == "a");
  CHECK(roster.name(HostId(7)) == "host 7");
}

TEST_CASE("invalid greetings get no number") {
  Roster roster;
  roster.give({host("a", 1)});
  for (const wire::Hello& wrong :
       {hello("", 1), hello("a b", 1), hello("a\n", 1), hello("c", 0), hello("c", -1),
        hello("c", 100'000), hello("a", 1), hello(std::string(254, 'x').c_str(), 1)}) {
    CAPTURE(wrong.name);
    CHECK(roster.admit(wrong).has_error());
  }
}

TEST_CASE("the slots of a host that was given back are used when it joins again") {
  Roster roster;
  roster.give({host("a", 1)});
  const auto joins = [&] {
    const auto id = roster.admit(hello("n7", 2));
    REQUIRE(id.has_value());
    CHECK(roster.up(*id, hello("n7", 2)) == Roster::News::joined);
    return *id;
  };
  const HostId first = joins();
  CHECK(roster.plan().slots.size() == 3);
  roster.give_back(first);
  CHECK(roster.plan().slots.size() == 1);
  CHECK(roster.down(first) == Roster::News::joined);
  CHECK(joins() == first);
  CHECK(roster.plan().slots.size() == 3);
}

TEST_CASE("rank 0 is reached at its agent's address, and on the loopback only by its own host") {
  Roster roster;
  roster.give({host("a", 1), host("b", 1)});
  wire::Hello there;
  there.address = "10.0.0.7";
  there.free_port = 4711;
  roster.up(HostId(0), there);
  CHECK(roster.meeting_on(HostId(0), true).address == "127.0.0.1");
  CHECK(roster.meeting_on(HostId(0), false).address == "10.0.0.7");
  CHECK(roster.meeting_on(HostId(0), false).port == 4711);
  launcher::hosts::Host named = host("a", 1);
  named.address = "10.9.9.9";
  roster.give({named, host("b", 1)});
  CHECK(roster.meeting_on(HostId(0), false).address == "10.9.9.9");
}

namespace {

wire::Hello with_gpus(std::vector<std::string> gpus) {
  wire::Hello hello;
  hello.gpus = std::move(gpus);
  return hello;
}

std::vector<int> sizes(Roster& roster) { return roster.plan().slots_by_host; }

}  // namespace

TEST_CASE("a host without a given number of slots has one slot per GPU") {
  using News = Roster::News;
  using Sizes = std::vector<int>;
  Roster roster(1, true);
  roster.give({host("a", 0), host("b", 0), host("c", 3), host("d", 0)});
  CHECK(roster.guesses());
  CHECK(sizes(roster) == Sizes{1, 1, 3, 1});
  CHECK(roster.up(HostId(0), with_gpus({"0", "1"})) == News::slots);
  CHECK(sizes(roster) == Sizes{2, 2, 3, 2});  // the others are assumed to be alike
  CHECK(roster.up(HostId(1), with_gpus({"0", "1"})) == News::none);
  CHECK(roster.up(HostId(2), with_gpus({"0", "1", "2", "3"})) == News::none);
  CHECK(sizes(roster) == Sizes{2, 2, 3, 2});
  CHECK(roster.guesses());
  CHECK(roster.up(HostId(3), with_gpus({})) == News::slots);
  CHECK(sizes(roster) == Sizes{2, 2, 3, 1});
  CHECK_FALSE(roster.guesses());
  // Only the GPUs of slots belong to the job.
  CHECK(roster.gpus(HostId(2)) == std::vector<std::string>{"0", "1", "2"});
  CHECK(roster.gpus(HostId(3)).empty());
  CHECK(roster.gpus(HostId(9)).empty());
}

TEST_CASE("the job may take only some of a host whose GPUs are counted") {
  Roster roster(1, true);
  launcher::hosts::Host a = host("a", 0);
  a.slots_max = 2;
  roster.give({a});
  CHECK(sizes(roster) == std::vector<int>{1});
  CHECK(roster.up(HostId(0), with_gpus({"0", "1", "2"})) == Roster::News::slots);
  CHECK(sizes(roster) == std::vector<int>{2});
  CHECK(roster.gpus(HostId(0)) == std::vector<std::string>{"0", "1"});
}

TEST_CASE("a given number of slots counts, however many GPUs there are") {
  Roster roster(4, false);
  roster.give({host("a", 0), host("b", 1)});
  CHECK_FALSE(roster.guesses());
  CHECK(roster.up(HostId(0), with_gpus({"0", "1"})) == Roster::News::none);
  CHECK(roster.up(HostId(1), with_gpus({"0", "1"})) == Roster::News::none);
  CHECK(sizes(roster) == std::vector<int>{4, 1});
  CHECK(roster.gpus(HostId(0)) == std::vector<std::string>{"0", "1"});
  CHECK(roster.gpus(HostId(1)) == std::vector<std::string>{"0"});
}

TEST_CASE("a slot is lost with its GPU, until the host comes up again") {
  using News = Roster::News;
  using Sizes = std::vector<int>;
  Roster roster(1, true);
  roster.give({host("a", 0), host("b", 2)});
  roster.up(HostId(0), with_gpus({"0", "1", "2"}));
  roster.up(HostId(1), with_gpus({"0"}));
  CHECK(roster.lose(HostId(0), 1));
  CHECK(roster.lose(HostId(0), 1));
  CHECK_FALSE(roster.lose(HostId(0), 3));
  CHECK_FALSE(roster.lose(HostId(0), -1));
  CHECK_FALSE(roster.lose(HostId(1), 1));  // a slot without a GPU
  CHECK_FALSE(roster.lose(HostId(9), 0));
  CHECK(sizes(roster) == Sizes{2, 2});
  CHECK(roster.plan().slots[1].slot == 2);
  CHECK(roster.gpus(HostId(0)) == std::vector<std::string>{"0", "", "2"});
  CHECK(roster.lose(HostId(1), 0));
  CHECK(sizes(roster) == Sizes{2, 1});
  CHECK(roster.down(HostId(0)) == News::slots);
  // otherwise a host that has lost all of them would never be asked again
  CHECK(sizes(roster) == Sizes{3, 1});
  CHECK(roster.down(HostId(0)) == News::none);
  CHECK(roster.up(HostId(0), with_gpus({"0", "1", "2"})) == News::none);
  CHECK(sizes(roster) == Sizes{3, 1});
  CHECK(roster.up(HostId(0), with_gpus({"", "1", "2"})) == News::slots);  // the GPU was lost before
  CHECK(sizes(roster) == Sizes{2, 1});
  for (const int slot : {0, 1, 2}) CHECK(roster.lose(HostId(0), slot));
  CHECK(sizes(roster) == Sizes{1});
}

TEST_CASE("what a host says about itself must obey the grammar of host files") {
  Roster roster;
  roster.give({host("a", 1)});
  for (const char* bad :
       {"", "../../etc/x", "a/b", "..", "-oProxyCommand=x", "a b", "a\nb", "$(x)"}) {
    CAPTURE(bad);
    CHECK(roster.admit(hello(bad, 1)).has_error());
  }
  CHECK(roster.admit(hello("node-7.rack_2", 1)).has_value());
  const auto error_of = [&](const wire::Hello& hello) {
    const auto admitted = roster.admit(hello, hello.host);
    return admitted ? "" : admitted.error().text;
  };
  wire::Hello given;
  given.host = HostId(0);
  CHECK(error_of(given).empty());
  for (const char* good : {"10.0.0.2", "fd00::2", "fe80::1%eth0"}) {
    given.address = good;
    CHECK(error_of(given).empty());
  }
  for (const char* bad : {"10.0.0.2;reboot", "10.0.0.256", "fd00::zz", "a=b"}) {
    given.address = bad;
    CHECK_FALSE(error_of(given).empty());
  }
  given.address.clear();
  given.gpus = {"", "GPU-5ab0d1f2", "MIG-GPU-3f/1/0"};
  CHECK(error_of(given).empty());
  given.gpus = {"GPU-1,GPU-2"};
  CHECK(error_of(given) == "'GPU-1,GPU-2' is no name of a GPU");
}
