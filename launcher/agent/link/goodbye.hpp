// The last word on an agent that has died, said by its watchdog.
//
// The controller waits a moment for an agent whose connection is lost to dial again. A dead one
// never will, and its watchdog knows that at once.
#pragma once

#include <string>

#include "launcher/executors/agent_start.hpp"

namespace elasticrun::launcher::agent::link {

// In the agent: what the watchdog at the other end of this socket needs to reach the controller,
// whose address has worked.
void tell_watchdog(int socket, const executors::AgentStart& start, const std::string& controller);

// In the watchdog, with its end of the socket, when the agent is dead. Takes a second at most, and
// does nothing when the agent had not reached the controller by itself.
void say_goodbye(int socket, const std::string& reason);

}  // namespace elasticrun::launcher::agent::link
