// The last message about an agent that has died, sent by its watchdog.
//
// When the connection of an agent is lost, the controller waits a moment for the agent to dial
// again. A dead agent never will, and its watchdog knows at once.
#pragma once

#include <string>

#include "launcher/executors/agent_start.hpp"

namespace elasticrun::launcher::agent::link {

// Called in the agent. Sends the watchdog at the other end of this socket what it needs to reach
// the controller; `controller` is the address that has worked.
void tell_watchdog(int socket, const executors::AgentStart& start, const std::string& controller);

// Called in the watchdog, with its end of the socket, when the agent is dead. Takes a second at
// most, and does nothing if the agent had not reached the controller by an address.
void say_goodbye(int socket, const std::string& reason);

}  // namespace elasticrun::launcher::agent::link
