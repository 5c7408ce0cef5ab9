// Whether a port of this machine is listened to, as the kernel says (a driver).
#pragma once

#include <cstdint>

namespace elasticrun::launcher::agent::workers {

// TCP, over IPv4 or IPv6. False, too, when the kernel does not answer. It is asked by netlink for
// listening sockets only: /proc/net/tcp lists all others, which takes milliseconds.
bool listens(std::uint16_t port);

}  // namespace elasticrun::launcher::agent::workers
