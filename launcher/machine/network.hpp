// The addresses of this machine, and which of them other hosts can dial.
//
// A name would need a DNS that knows it on every host, and resolves on many machines to 127.0.1.1,
// which is the classic way for a first run over several hosts to hang. So addresses are numeric,
// and those of the loopback are never offered to others.
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

// Of all interfaces that are up, in the kernel's order (a driver: it asks the kernel).
std::vector<OwnAddress> own_addresses();

// Those of `own` that others can dial, the best first: IPv4 before IPv6, bridges of containers
// last; never loopback or link-local. `wish` narrows them: an interface ("eth1"), an address, or a
// network in CIDR notation ("10.1.0.0/16", "fd00::/8"); empty: no wish. An error says what there
// is. Pure.
Result<std::vector<std::string>> addresses_for_others(const std::vector<OwnAddress>& own,
                                                      std::string_view wish);

// Where workers on this host meet those on others, of what is known: where connections to the
// controller come from, where ssh reached us (SSH_CONNECTION, see sshd(8); empty: it did not), and
// what we could offer. Loopback when there is nothing else. Pure.
std::string data_address(const std::string& towards_controller, std::string_view ssh_connection,
                         const std::vector<std::string>& for_others);

bool is_loopback(std::string_view address);

// The address of ours that a connection to that numeric address would come from; empty when there
// is no way to it. Sends nothing.
std::string source_towards(const std::string& address);

}  // namespace elasticrun::launcher::machine
