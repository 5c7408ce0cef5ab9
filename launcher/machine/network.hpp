// The addresses of this machine, and which of them other hosts can dial.
//
// A name would have to be resolvable on every host, and on many machines the host's name resolves
// to 127.0.1.1, a classic reason why a first run over several hosts hangs. So addresses are
// numeric, and loopback addresses are never offered to other hosts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace elasticrun::launcher::machine {

struct OwnAddress {
  std::string interface;
  std::string address;  // numeric, without a scope
  bool loopback = false;

  bool operator==(const OwnAddress&) const = default;
};

// The addresses of all interfaces that are up, in the kernel's order. Not pure: asks the kernel.
std::vector<OwnAddress> own_addresses();

// The interface that has the address; empty: none in `own` has it. Pure.
std::string interface_of(const std::vector<OwnAddress>& own, std::string_view address);

// The addresses in `own` that other hosts can dial, the best first: IPv4 before IPv6, container
// bridges last; never loopback or link-local. `wish` selects among them: an interface ("eth1"), an
// address, or a network in CIDR notation ("10.1.0.0/16", "fd00::/8"); empty: all. The error, when
// none matches `wish`, lists the addresses that exist. Pure.
Result<std::vector<std::string>> addresses_for_others(const std::vector<OwnAddress>& own,
                                                      std::string_view wish);

// The address at which workers on other hosts reach those on this host. It is the first of these
// that is known and not loopback: our source address towards the controller; the address at which
// ssh reached us (SSH_CONNECTION, see sshd(8); empty: not by ssh); the first of `for_others`. If
// there is none, it is 127.0.0.1. Pure.
std::string data_address(const std::string& towards_controller, std::string_view ssh_connection,
                         const std::vector<std::string>& for_others);

bool is_loopback(std::string_view address);

// Our source address for a connection to that numeric address; empty when there is no route to it.
// Sends nothing.
std::string source_towards(const std::string& address);

}  // namespace elasticrun::launcher::machine
