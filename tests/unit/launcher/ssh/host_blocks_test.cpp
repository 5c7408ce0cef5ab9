// Which hosts get the same configuration, and when nothing is known of any host.
#include "launcher/ssh/host_blocks.hpp"

#include <doctest/doctest.h>

#include <map>

namespace elasticrun::launcher::ssh {
namespace {

using Files = std::map<std::string, std::string>;
using Standing = std::optional<HostBlocks::Standing>;

HostBlocks read(const std::string& text, const Files& more = {}) {
  HostBlocks blocks;
  blocks.read({"config", text}, [&](const std::string& path) {
    const auto found = more.find(path);
    return found == more.end() ? std::vector<ConfigFile>{}
                               : std::vector<ConfigFile>{{found->first, found->second}};
  });
  return blocks;
}

bool alike(const HostBlocks& blocks, const std::string& one, const std::string& other) {
  const Standing a = blocks.of(one), b = blocks.of(other);
  REQUIRE(a);
  REQUIRE(b);
  return a->blocks == b->blocks;
}

std::string hostname(const HostBlocks& blocks, const std::string& host) {
  const Standing standing = blocks.of(host);
  return standing ? standing->hostname : "?";
}

TEST_CASE("hosts are alike when the same blocks apply") {
  CHECK(alike(read(""), "a", "b"));
  CHECK(alike(read("User bob\nPort 23\n"), "a", "b"));
  CHECK(alike(read("Host *\n User bob\n"), "a", "b"));
  CHECK(!alike(read("Host a\n User bob\n"), "a", "b"));
  CHECK(!alike(read("host = a\n User=bob\n"), "a", "b"));
  CHECK(!alike(read("\tHOST\ta c\r\n\tUser bob\r\n"), "a", "b"));
  CHECK(alike(read("Host a c\n User bob\n"), "a", "c"));
  CHECK(alike(read("Host a\n HostName 10.0.0.1\n"), "a", "b"));
  CHECK(alike(read("Host a\n # User bob\n\nHost *\nUser bob\n"), "a", "b"));
  CHECK(!alike(read("Host n? !n3\n User bob\n"), "n2", "n3"));
  CHECK(alike(read("Host n? !n3\n User bob\n"), "n3", "n10"));
  CHECK(!alike(read("Host a\n User x\nHost *\n User bob\n"), "a", "b"));
}

TEST_CASE("patterns match host names") {
  const auto applies = [](const std::string& pattern, const std::string& name) {
    return !alike(read("Host " + pattern + "\n User bob\n"), name, "none-of-them");
  };
  for (const char* pattern : {"node12", "*12", "node*", "n*2", "n*d*1*", "node??", "*ode1*2*"})
    CHECK_MESSAGE(applies(pattern, "node12"), pattern);
  for (const char* pattern :
       {"node1", "node", "ode12", "?ode1", "Node12", "*13", "n*x*2", "!node12"})
    CHECK_MESSAGE(!applies(pattern, "node12"), pattern);
}

TEST_CASE("the name that ssh will use is found") {
  CHECK(hostname(read(""), "a") == "a");
  const HostBlocks blocks = read(
      "Host a\n HostName 10.0.0.1\nHost b\n HostName Box-%h%%x\nHost n*\n HostName %h.Example.org\n"
      "Host *\n HostName late\n");
  CHECK(hostname(blocks, "a") == "10.0.0.1");
  CHECK(hostname(blocks, "n7") == "n7.example.org");
  CHECK(hostname(blocks, "c") == "late");
  CHECK(hostname(blocks, "b") == "?");  // a percent sign is left
  CHECK(hostname(read("HostName %n\n"), "a") == "?");
}

TEST_CASE("an included file takes the place of its Include") {
  const Files more = {{"x", "User bob\nHost b\n Port 1\n"}, {"self", "Include self\n"}};
  CHECK(alike(read("Include x\nPort 2\n", more), "a", "c"));
  CHECK(!alike(read("Include x\n", more), "a", "b"));
  const HostBlocks inside = read("Host a b\n Include x\n Port 3\nHost c\n Port 4\n", more);
  CHECK(!alike(inside, "a", "b"));
  CHECK(!alike(inside, "a", "d"));
  CHECK(!alike(inside, "c", "d"));
  CHECK(alike(read("Host z\n Include x\n", more), "a", "b"));
  CHECK(inside.paths() == std::vector<std::string>{"config", "x"});
  CHECK(!read("Include self\n", more).of("a"));
}

TEST_CASE("a final pass uses the name that the first pass has found") {
  const std::string text = "Host a\n HostName b\nMatch final all\n User bob\nHost b\n Port 1\n";
  const HostBlocks blocks = read(text);
  CHECK(!alike(blocks, "a", "c"));
  CHECK(hostname(blocks, "a") == "b");
  CHECK(!alike(read("Host a\n HostName b\nHost b\n Port 1\n"), "b", "c"));
  CHECK(alike(read("Host a\n HostName b\nHost b\n Port 1\n"), "a", "c"));
  CHECK(alike(read("Match all\n User bob\n"), "a", "b"));
}

TEST_CASE("nothing is known of any host where the configuration is not understood") {
  for (const char* text :
       {"Match host a\n", "Match final host a\n", "Match exec \"true\"\n", "Match\n",
        "CanonicalizeHostname yes\n", "CanonicalDomains example.org\n", "Host \"a b\"\n",
        "Host a # and b\n", "Host\n", "\"Host\" a\n", "Include ${HOME}/x\n", "HostName \"a\"\n"}) {
    CHECK_MESSAGE(!read(text).of("a"), text);
    CHECK_MESSAGE(!read(std::string("User x\n") + text).of("a"), text);
  }
  for (const char* name : {"", "A", "bob@a", "ssh://a", "fe80::1%eth0", "::1", "a b"})
    CHECK_MESSAGE(!read("").of(name), name);
}

}  // namespace
}  // namespace elasticrun::launcher::ssh
