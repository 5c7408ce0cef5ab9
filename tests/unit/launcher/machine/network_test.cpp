// Which addresses are offered to other hosts, as tables.
#include "launcher/machine/network.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace elasticrun::launcher::machine;

namespace {

const std::vector<OwnAddress> own{{"lo", "127.0.0.1", true},        {"lo", "::1", true},
                                  {"docker0", "172.17.0.1", false}, {"eth0", "fd00::5", false},
                                  {"eth0", "10.0.0.5", false},      {"eth0", "fe80::1", false},
                                  {"eth1", "169.254.3.4", false},   {"ib0", "192.168.7.5", false}};

std::string offered(std::string_view wish) {
  const auto addresses = addresses_for_others(own, wish);
  if (!addresses) return addresses.error().text;
  std::string text;
  for (const auto& address : *addresses) text += address + " ";
  return text;
}

}  // namespace

TEST_CASE("addresses are offered to other hosts, the best first") {
  const struct {
    std::string_view wish;
    std::string_view offered;
  } cases[] = {
      {"", "10.0.0.5 192.168.7.5 fd00::5 172.17.0.1 "},
      {"ib0", "192.168.7.5 "},
      {"eth0", "10.0.0.5 fd00::5 "},
      {"10.0.0.5", "10.0.0.5 "},
      {"10.0.0.0/8", "10.0.0.5 "},
      {"10.0.0.0/30",
       "'10.0.0.0/30' is no interface, address or network of this machine; it has "
       "docker0 172.17.0.1, eth0 fd00::5, eth0 10.0.0.5, ib0 192.168.7.5"},
      {"10.0.0.7/24", "10.0.0.5 "},
      {"0.0.0.0/0", "10.0.0.5 192.168.7.5 172.17.0.1 "},
      {"fd00::/8", "fd00::5 "},
      {"docker0", "172.17.0.1 "},
      {"lo",
       "'lo' is no interface, address or network of this machine; it has docker0 172.17.0.1, "
       "eth0 fd00::5, eth0 10.0.0.5, ib0 192.168.7.5"},
      {"127.0.0.1",
       "'127.0.0.1' is the loopback, which other hosts cannot reach; name an interface, an address "
       "or a network"},
  };
  for (const auto& one : cases) {
    CAPTURE(one.wish);
    CHECK(offered(one.wish) == one.offered);
  }
}

TEST_CASE("a machine without a network offers no address, and refuses a wish") {
  const std::vector<OwnAddress> alone{{"lo", "127.0.0.1", true}};
  CHECK(addresses_for_others(alone, "")->empty());
  CHECK(addresses_for_others(alone, "eth0").error().text ==
        "'eth0' is no interface, address or network of this machine; it has none but the loopback");
}

TEST_CASE("workers meet at an address that other hosts can reach") {
  const struct {
    std::string towards_controller, ssh_connection;
    std::vector<std::string> for_others;
    std::string_view address;
  } cases[] = {
      {"10.0.0.5", "", {}, "10.0.0.5"},
      {"10.0.0.5", "10.9.9.9 41 10.9.9.5 22", {"10.1.1.1"}, "10.0.0.5"},
      // the controller is reached through a forwarded port
      {"127.0.0.1", "10.9.9.9 41 10.9.9.5 22", {"10.1.1.1"}, "10.9.9.5"},
      {"", "fd00::9 41 fd00::5 22", {}, "fd00::5"},
      {"127.0.0.1", "::1 41 ::1 22", {"10.1.1.1"}, "10.1.1.1"},  // ssh to this machine
      {"127.0.0.1", "10.9.9.9 41", {"10.1.1.1"}, "10.1.1.1"},
      {"127.0.0.1", "", {}, "127.0.0.1"},
  };
  for (const auto& one : cases) {
    CAPTURE(one.towards_controller);
    CAPTURE(one.ssh_connection);
    CHECK(data_address(one.towards_controller, one.ssh_connection, one.for_others) == one.address);
  }
}

TEST_CASE("own addresses come from the kernel") {
  CHECK(std::ranges::count(own_addresses(), "127.0.0.1", &OwnAddress::address) == 1);
  CHECK(source_towards("127.0.0.1") == "127.0.0.1");
  CHECK(source_towards("no address").empty());
  CHECK(is_loopback("127.0.1.1"));
  CHECK(is_loopback("::1"));
  CHECK_FALSE(is_loopback("10.0.0.1"));
}
