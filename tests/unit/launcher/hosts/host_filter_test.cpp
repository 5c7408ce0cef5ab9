// --include and --exclude: which hosts are left, and every mistake in a list.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "launcher/hosts/host_filter.hpp"

using namespace elasticrun;
using namespace elasticrun::launcher::hosts;

namespace {

std::string text_of(const std::vector<Host>& hosts) {
  std::string text;
  for (const Host& host : hosts) {
    text += (text.empty() ? "" : " ") + key_of(host);
    if (host.slots > 0) text += fmt::format(":{}", host.slots);
    if (host.slots_max > 0) text += fmt::format("<={}", host.slots_max);
  }
  return text;
}

// Applies --include and --exclude to the host list.
std::string left(const char* hosts, const char* include, const char* exclude) {
  HostFilter filter;
  if (*include) filter.include = parse_include(include, "--include").value();
  if (*exclude) filter.exclude = parse_exclude(exclude, "--exclude").value();
  return text_of(chosen(parse_host_list(hosts, "-H").value(), filter));
}

}  // namespace

TEST_CASE("include and exclude select hosts") {
  struct Row {
    const char* hosts;
    const char* include;
    const char* exclude;
    const char* left;
  };
  const Row rows[] = {
      {"a,b,c", "", "", "a b c"},
      {"a,b,c", "b", "", "b"},
      {"a,b,c", "c,a", "", "a c"},  // ranks follow the host list
      {"a,b,c", "", "b", "a c"},
      {"a,b,c", "a,b", "b", "a"},
      {"a,b,c", "", "a,b,c", ""},
      {"a,b", "z", "", ""},
      {"a,b", "", "z", "a b"},
      {"n[01-16]", "n[03-05]", "", "n03 n04 n05"},
      {"n[01-16]", "n[01-08]", "n[02-15]", "n01"},
      {"n1,n2", "n[01-02]", "", ""},  // leading zeros are part of a name
      {"a:4,b:4", "a:2,b", "", "a:4<=2 b:4"},
      {"a:4,b:4", "a:6", "", "a:4<=6"},
      {"a,b", "a:2", "", "a<=2"},  // the slots of a may be its GPUs
      {"Node1,b", "node1", "", "Node1"},
      {"[::1]:2,b", "[::1]", "", "::1:2"},
      {"a port=1,a port=2,b", "a", "", "a port=1 a port=2"},
      {"a port=1,a port=2,b", "a port=2", "", "a port=2"},
      {"a port=1,a port=2,b", "", "a port=2", "a port=1 b"},
      {"bob@a,b", "a", "", "a"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.hosts);
    CAPTURE(row.include);
    CAPTURE(row.exclude);
    CHECK(left(row.hosts, row.include, row.exclude) == row.left);
  }
}

TEST_CASE("names that are not among the hosts are found") {
  const auto hosts = parse_host_list("a,Node1,b port=1,b port=2", "-H").value();
  const auto unknown = [&](const char* list) {
    const auto names = parse_include(list, "").value();
    const Host* const host = first_unknown(names, hosts);
    return host ? key_of(*host) : "";
  };
  CHECK(unknown("a,node1").empty());
  CHECK(unknown("b").empty());
  CHECK(unknown("b port=2").empty());
  CHECK(unknown("a,c,d") == "c");
  CHECK(unknown("a port=1") == "a port=1");
}

TEST_CASE("wrong lists are refused with one line") {
  struct Row {
    bool include;
    const char* list;
    const char* error;
  };
  const char* const counted = "hosts are separated by commas, and their slots are counted; write ";
  const char* const whole = "hosts are separated by commas and left out whole; write ";
  const Row rows[] = {
      {true, "", "w: item 1 is empty; write a list as in a:4,b:4"},
      {true, "a,,b", "w: item 2 is empty; write a list as in a:4,b:4"},
      {true, "a,a", "w: a is given twice; it was first given in item 1"},
      {true, "a:x", "w: slots must be a number from 1 to 1024, not 'x'"},
      {true, "a user=bob", "w: a: give only names here, and the rest with the hosts"},
      {true, "a spare", "w: a: give only names here, and the rest with the hosts"},
      {true, "a@b:0,2", "w: 'a@b:0,2' is not understood; {}a,b:2"},
      {true, "a:0,1,2@b:1@c", "w: 'a:0,1,2@b:1@c' is not understood; {}a:3,b:1,c"},
      {true, "b:0", "w: 'b:0' is not understood; {}b:1"},
      {true, "b:1,3", "w: 'b:1,3' is not understood; {}b:2"},
      {false, "a@b", "w: 'a@b' is not understood; {}a,b"},
      {false, "a@b:0,2", "w: 'a@b:0,2' is not understood; {}a,b"},
      {false, "a:2", "w: a:2: hosts are left out whole; write a"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.list);
    const auto hosts = row.include ? parse_include(row.list, "w") : parse_exclude(row.list, "w");
    REQUIRE(hosts.has_error());
    CHECK(hosts.error().text ==
          fmt::format(fmt::runtime(row.error), row.include ? counted : whole));
  }
}
