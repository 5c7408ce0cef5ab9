// The key that an agent was given, as TLS takes it.
#pragma once

#include "launcher/agent_start.hpp"
#include "net/tls.hpp"

namespace elasticrun::launcher {

inline net::TlsKey key_of(const AgentStart& start) {
  return {start.identity, net::from_hex(start.key_hex).value_or(net::Secret{})};
}

}  // namespace elasticrun::launcher
