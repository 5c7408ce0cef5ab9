// The first frame in each direction of a connection. As in messages.hpp, a declared struct is the
// wire format.
#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.hpp"

namespace elasticrun::wire {

// Sent first, by the side that dialled.
struct Hello {
  std::uint32_t protocol = 0;
  std::string version;  // of the program or library, for error texts
  std::string role;     // "agent" or "worker"; "watchdog": reports that the host's agent is dead
  std::string job;      // job id
  Term term;
  std::string proof;  // that the sender has the key of this connection; empty on a Unix socket
  HostId host;        // agents: which host this is; no_host: one that joins by itself
  WorkerId worker;    // workers: which worker this is
  std::int32_t pid = 0;
  // Agents: number of counted frames received over earlier connections that this one continues;
  // -1: a new conversation.
  std::int64_t resumes = -1;
  std::string name;             // of the host
  std::int32_t slots = 0;       // agents that join by themselves: number of workers they take
  std::string address;          // agents: where workers of other hosts reach the workers here
  std::uint16_t free_port = 0;  // agents: an unused port of the host, for programs that want one
  // Agents: the GPU that slot 0, 1, ... stands for, as CUDA names it; empty text: that GPU is lost.
  std::vector<std::string> gpus;
  std::string reason;  // of a watchdog: why its agent is dead
};
struct Welcome {
  std::uint32_t protocol = 0;
  std::string version;
  Term term;
  std::string refused;        // empty: welcome; otherwise why not, for the user
  std::string proof;          // as in Hello
  std::int64_t received = 0;  // if this resumes: counted frames received over earlier connections
  // For an agent that joined by itself; other agents get these when they are started.
  HostId host;           // the number it has from now on
  std::string identity;  // with key_hex: the agent's own key, in place of the join key
  std::string key_hex;
  std::int64_t lease_ms = 0;
  std::int64_t heartbeat_ms = 0;
  std::int64_t orphan_grace_ms = 0;
  std::int64_t standstill_ms = 0;
  std::string notice;  // command that says when a host will go; empty: none
};

BOOST_DESCRIBE_STRUCT(Hello, (),
                      (protocol, version, role, job, term, proof, host, worker, pid, resumes, name,
                       slots, address, free_port, gpus, reason))
BOOST_DESCRIBE_STRUCT(Welcome, (),
                      (protocol, version, term, refused, proof, received, host, identity, key_hex,
                       lease_ms, heartbeat_ms, orphan_grace_ms, standstill_ms, notice))

}  // namespace elasticrun::wire
