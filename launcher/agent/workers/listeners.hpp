// Whether a port of this machine is listened to, from the kernel's tables. Pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace elasticrun::launcher::agent::workers {

// `table`: the text of /proc/net/tcp or /proc/net/tcp6.
bool listens(std::string_view table, std::uint16_t port);

}  // namespace elasticrun::launcher::agent::workers
