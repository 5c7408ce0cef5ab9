// The agent's key in the form that the TLS code takes.
#pragma once

#include "launcher/executors/agent_start.hpp"
#include "net/tls.hpp"

namespace elasticrun::launcher::agent::link {

inline net::TlsKey key_of(const executors::AgentStart& start) {
  return {start.identity, net::from_hex(start.key_hex).value_or(net::Secret{})};
}

}  // namespace elasticrun::launcher::agent::link
