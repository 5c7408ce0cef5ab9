// The host file as a table: every dialect that must be read, and every mistake with its one line.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "launcher/hosts/host_line.hpp"
#include "launcher/hosts/hosts.hpp"

using namespace elasticrun;
using namespace elasticrun::launcher::hosts;

namespace {

// Everything that is set for a host, in one line.
std::string text_of(const Host& host) {
  std::string text = host.name;
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) text += fmt::format(" {}={}", key, value);
  };
  if (host.slots) add("slots", fmt::format("{}", host.slots));
  add("user", host.user);
  if (host.port) add("port", fmt::format("{}", host.port));
  add("identity", host.identity);
  add("address", host.address);
  add("type", host.type);
  add("rack", host.rack);
  if (host.price > 0) add("price", fmt::format("{}", host.price));
  if (host.spare) text += " spare";
  return text;
}

std::string text_of(const Result<std::vector<Host>>& hosts) {
  if (!hosts) return hosts.error().text;
  std::string text;
  for (const Host& host : *hosts) text += (text.empty() ? "" : " | ") + text_of(host);
  return text;
}

struct Case {
  std::string in;
  std::string out;
};

}  // namespace

TEST_CASE("valid lines are parsed") {
  const Case cases[] = {
      {"a", "a"},
      {"a:4", "a slots=4"},
      {"node-1.cluster_x.org", "node-1.cluster_x.org"},
      {"  a\t ", "a"},
      {"a # comment", "a"},
      {"a:2# comment", "a slots=2"},
      {"a\r", "a"},
      {"a slots=4", "a slots=4"},
      {"a slots=1024", "a slots=1024"},
      {"bob@a", "a user=bob"},
      {"bob@corp.org@a:2", "a slots=2 user=bob@corp.org"},
      {"a user=bob", "a user=bob"},
      // Open MPI
      {"a slots=4 max_slots=8", "a slots=4"},
      {"a slots=4 max-slots=8", "a slots=4"},
      {"a slots = 4", "a slots=4"},
      {"a slots= 4 max_slots =8", "a slots=4"},
      {"a cpu=2", "a slots=2"},
      {"a count=2 username=bob", "a slots=2 user=bob"},
      {"a sockets=2 cores=8", "a"},
      // hydra
      {"a:4 binding=user:0,1", "a slots=4"},
      {"a:4 ifname=eth1 user=bob", "a slots=4 user=bob"},
      // DeepSpeed, Horovod
      {"worker-1 slots=8", "worker-1 slots=8"},
      // ranges
      {"n[1-3]", "n1 | n2 | n3"},
      {"n[08-11]:2", "n08 slots=2 | n09 slots=2 | n10 slots=2 | n11 slots=2"},
      {"n[01-02,7]x", "n01x | n02x | n7x"},
      {"r[1-2]n[1-2]", "r1n1 | r1n2 | r2n1 | r2n2"},
      {"[1-2]", "1 | 2"},
      {"n[5]", "n5"},
      {"bob@n[1-2]:3", "n1 slots=3 user=bob | n2 slots=3 user=bob"},
      {"10.0.0.[1-2]", "10.0.0.1 | 10.0.0.2"},
      // addresses
      {"10.0.0.7:2", "10.0.0.7 slots=2"},
      {"[::1]", "::1"},
      {"[::1]:2", "::1 slots=2"},
      {"[fe80::1%eth0]:2", "fe80::1%eth0 slots=2"},
      {"bob@[2001:db8::7] slots=2", "2001:db8::7 slots=2 user=bob"},
      // keys
      {"a port=2222", "a port=2222"},
      {"a identity=/keys/id_a", "a identity=/keys/id_a"},
      {"a identity=\"/my keys/#1\"", "a identity=/my keys/#1"},
      {"a address=10.0.0.1", "a address=10.0.0.1"},
      {"a address=fd00::1", "a address=fd00::1"},
      {"a price=2.5", "a price=2.5"},
      {"a price=0", "a"},
      {"a type=H100 rack=r7", "a type=H100 rack=r7"},
      {"a spare", "a spare"},
      {"a spare=yes", "a spare"},
      {"a spare=no", "a"},
      {"a:8 port=22 user=u identity=k address=b type=t rack=r price=1 spare",
       "a slots=8 user=u port=22 identity=k address=b type=t rack=r price=1 spare"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.in);
    CHECK(text_of(parse_host_line(one.in)) == one.out);
  }
}

TEST_CASE("empty lines and comments contain no host") {
  for (const char* line : {"", "   ", "\t\r", "# a", "  # a slots=4", "#"}) {
    CAPTURE(line);
    const auto hosts = parse_host_line(line);
    REQUIRE(hosts.has_value());
    CHECK(hosts->empty());
  }
}

TEST_CASE("invalid lines are refused with one line") {
  const std::string keys = "slots port user identity price type spare rack address";
  const std::string slots = "slots must be a number from 1 to 1024, not ";
  const std::string port = "port must be a number from 1 to 65535, not ";
  const std::string from_ssh =
      "' is no user name here: as ssh, this takes '\\' and '$' only from a User line in the "
      "configuration of ssh";
  const Case cases[] = {
      {"a:0", slots + "'0'"},
      {"a:-1", slots + "'-1'"},
      {"a:", slots + "''"},
      {"a:x", slots + "'x'"},
      {"a:4x", slots + "'4x'"},
      {"a:+4", slots + "'+4'"},
      {"a:1025", slots + "'1025'; write a port of ssh as port=..."},
      {"a:99999999999999999999", slots + "'99999999999999999999'"},
      {"a slots=0", slots + "'0'"},
      {"a slots=four", slots + "'four'"},
      {"a slots=4.0", slots + "'4.0'"},
      {"a slots=", "'slots=' has no value"},
      {"a slots", "'slots' is not understood; after the host come key=value: " + keys},
      {"a 4", "'4' is not understood; after the host come key=value: " + keys},
      {"a:4 slots=4", "slots is given twice"},
      {"a slots=4 cpus=4", "slots is given twice"},
      {"bob@a user=bob", "user is given twice"},
      {"a slot=4", "unknown key 'slot'; the keys are " + keys},
      {"a SLOTS=4", "unknown key 'SLOTS'; the keys are " + keys},
      {"a =4", "unknown key ''; the keys are " + keys},
      {"a port=0", port + "'0'"},
      {"a port=65536", port + "'65536'"},
      {"a port=ssh", port + "'ssh'"},
      {"a price=-1", "price must be a number as in 2.5, not '-1'"},
      {"a price=nan", "price must be a number as in 2.5, not 'nan'"},
      {"a price=1e999", "price must be a number as in 2.5, not '1e999'"},
      {"a price=2$", "price must be a number as in 2.5, not '2$'"},
      {"a spare=maybe", "spare is yes or no, not 'maybe'"},
      {"a identity=\"x", "a quote is not closed; write it as in identity=\"my key\""},
      {":4", "there is no host name"},
      {"@a", "'' is no user name"},
      {"bob@", "there is no host name"},
      {"-oProxyCommand=x@a", "'-oProxyCommand=x' is no user name"},
      {"bob;reboot@a", "'bob;reboot' is no user name"},
      {"a user=\"a b\"", "'a b' is no user name"},
      {"corp\\bob@a", "'corp\\bob" + from_ssh},
      {"$HOME@a", "'$HOME" + from_ssh},
      {"a user=host$", "'host$" + from_ssh},
      {"-v", "'-v' is no host name; it cannot begin with '-'"},
      {"a/b", "'a/b' is no host name; letters, digits, '-', '_' and '.' make one"},
      {"a;reboot", "'a;reboot' is no host name; letters, digits, '-', '_' and '.' make one"},
      {"a\x01"
       "b",
       "'a?b' is no host name; letters, digits, '-', '_' and '.' make one"},
      {"10.0.0.300", "'10.0.0.300' is no IPv4 address"},
      {"::1", "'::1' has several colons; write IPv6 in brackets, as in [::1]:4"},
      {"a:2:3", "'a:2:3' has several colons; write IPv6 in brackets, as in [::1]:4"},
      {"[::1", "'[::1' has several colons; write IPv6 in brackets, as in [::1]:4"},
      {"[::g]", "'[::g]' is no IPv6 address"},
      {"[::1]x", "'x' after ']' is not understood; write [::1]:4"},
      {"[::1%]", "'[::1%]' is no IPv6 address"},
      {"n[1-3", "'[' without ']'; write ranges as in n[01-16,20]"},
      {"n]", "'n]' is no host name; letters, digits, '-', '_' and '.' make one"},
      {"n[]", "'[]' is no range; write it as in n[01-16,20]"},
      {"n[1-]", "'[1-]' is no range; write it as in n[01-16,20]"},
      {"n[a-c]", "'[a-c]' is no range; write it as in n[01-16,20]"},
      {"n[1,,2]", "'[]' is no range; write it as in n[01-16,20]"},
      {"n[3-1]", "the range '3-1' runs backwards; write [1-3]"},
      {"n[0-999999999]", "the range '0-999999999' is larger than 65536 hosts"},
      {"n[1-999]m[1-999]", "the ranges give more than 65536 hosts"},
      {"n[1-2] address=b", "several hosts cannot share one address; give each host its own line"},
      {"a address=b:c", "'[b:c]' is no IPv6 address"},
      {std::string(9000, 'a'), "the line is longer than 8192 characters"},
      {std::string(254, 'a'), "the host name is longer than 253 characters"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.in);
    CHECK(text_of(parse_host_line(one.in)) == one.out);
  }
}

TEST_CASE("files are parsed, and errors name the line") {
  const Case cases[] = {
      {"a\nb\n", "a | b"},
      {"a\nb", "a | b"},
      {"\n# all\r\na:2\r\n\r\nb slots=3\r\n", "a slots=2 | b slots=3"},
      {"\xef\xbb\xbf"
       "a\n",
       "a"},
      {"b\na\n", "b | a"},
      {"a port=1\na port=2\n", "a port=1 | a port=2"},
      {"", "h.txt: no host in it; write one a line, as in 'node1 slots=4'"},
      {"\n# a\n", "h.txt: no host in it; write one a line, as in 'node1 slots=4'"},
      {"a\n\nb:0\n", "h.txt:3: slots must be a number from 1 to 1024, not '0'"},
      {"a\nb\na slots=2\n", "h.txt:3: a is given twice; it was first given in line 1"},
      {"a\nA\n", "a slots=2"},
      {"n[1-4]\nn3\n", "h.txt:2: n3 is given twice; it was first given in line 1"},
      {"n[1,1]\n", "h.txt:1: n1 is given twice; it was first given in line 1"},
      {"bob@a\neve@a\n", "h.txt:2: a is given twice; it was first given in line 1"},
      {"a port=7\na port=7\n", "h.txt:2: a port=7 is given twice; it was first given in line 1"},
      {"n[1-65536]\nx\n", "h.txt:2: more than 65536 hosts"},
      {std::string("a\0b\n", 4),
       "h.txt:1: 'a?b' is no host name; letters, digits, '-', '_' and '.' make one"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.in);
    CHECK(text_of(parse_hosts(one.in, "h.txt")) == one.out);
  }
}

TEST_CASE("a host knows its line") {
  const auto hosts = parse_hosts("# first\na\n\nn[1-2]\n", "h.txt");
  REQUIRE(hosts.has_value());
  REQUIRE(hosts->size() == 3);
  CHECK((*hosts)[0].line == 2);
  CHECK((*hosts)[1].line == 4);
  CHECK((*hosts)[2].line == 4);
}

TEST_CASE("host lists are parsed") {
  const Case cases[] = {
      {"a:4,b:4", "a slots=4 | b slots=4"},
      {"localhost:4", "localhost slots=4"},
      {"[::1]:2", "::1 slots=2"},
      {"[::1]", "::1"},
      {"n[1-2,5]:4,b", "n1 slots=4 | n2 slots=4 | n5 slots=4 | b"},
      {"bob@a,b", "a user=bob | b"},
      {"", "-H: item 1 is empty; write a list as in a:4,b:4"},
      {"a,,b", "-H: item 2 is empty; write a list as in a:4,b:4"},
      {"a,", "-H: item 2 is empty; write a list as in a:4,b:4"},
      {"#,a", "a"},
      {"#", "-H: no host in it"},
      {"a:4,b:0", "-H: slots must be a number from 1 to 1024, not '0'"},
      {"a,b,a:2", "-H: a is given twice; it was first given in item 1"},
      {"n[1,2", "-H: '[' without ']'; write ranges as in n[01-16,20]"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.in);
    CHECK(text_of(parse_host_list(one.in, "-H")) == one.out);
  }
}

TEST_CASE("a file without a final newline is incomplete") {
  CHECK(is_complete("a\nb\n"));
  CHECK(is_complete(""));
  CHECK_FALSE(is_complete("a\nn12"));
}

TEST_CASE("a host is recognized as this machine") {
  const OwnNames own{{"n1.cluster", "n1", "10.0.0.1", "fd00::1"}, "bob"};
  struct Row {
    const char* line;
    bool here;
  };
  const Row rows[] = {
      {"localhost", true},
      {"LOCALHOST:4", true},
      {"127.0.0.1", true},
      {"127.1.2.3", true},
      {"[::1]:2", true},
      {"n1", true},
      {"N1.Cluster", true},
      {"10.0.0.1", true},
      {"[fd00::1]", true},
      {"bob@n1", true},
      {"n2", false},
      {"n1.other", false},
      {"10.0.0.2", false},
      {"127.example.org", false},
      {"eve@localhost", false},
      {"localhost port=2222", false},
      {"n1 identity=key", false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.line);
    const auto hosts = parse_host_line(row.line);
    REQUIRE(hosts.has_value());
    CHECK(is_this_machine(hosts->front(), own) == row.here);
  }
}
