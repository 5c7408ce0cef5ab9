// The first frame each way of a connection. As messages.hpp says of all messages: a declared struct
// is the wire format.
#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.hpp"

namespace elasticrun::wire {

// The side that dialled speaks first.
struct Hello {
  std::uint32_t protocol = 0;
  std::string version;  // of the program or library, for messages to people
  std::string role;     // "agent" or "worker"; "watchdog": the agent of that host is dead
  std::string job;      // job id
  Term term;
  std::string proof;  // that the sender has the key of this connection; empty on a Unix socket
  HostId host;        // agents: which host this is; no_host: one that joins by itself
  WorkerId worker;    // workers: which worker this is
  std::int32_t pid = 0;
  // Agents: -1, or this goes on with an earlier connection, over which so many counted frames came.
  std::int64_t resumes = -1;
  std::string name;             // agents that join by themselves: what people call the host
  std::int32_t slots = 0;       // likewise: workers it takes
  std::string address;          // agents: where workers of other hosts reach the ones here
  std::uint16_t free_port = 0;  // agents: one there that nobody uses, for programs that want it
  // Agents: what slots 0, 1, ... there stand for, as CUDA names it; empty: one that is lost.
  std::vector<std::string> gpus;
};
struct Welcome {
  std::uint32_t protocol = 0;
  std::string version;
  Term term;
  std::string refused;        // empty: welcome; else why not, for a person
  std::string proof;          // as in Hello
  std::int64_t received = 0;  // counted frames over earlier connections, where it resumes one
  // For an agent that joined by itself; others were told by who started them.
  HostId host;           // the number it has from now on
  std::string identity;  // with the key below: its own, in place of the one that let it join
  std::string key_hex;
  std::int64_t lease_ms = 0;
  std::int64_t heartbeat_ms = 0;
  std::int64_t orphan_grace_ms = 0;
};

BOOST_DESCRIBE_STRUCT(Hello, (),
                      (protocol, version, role, job, term, proof, host, worker, pid, resumes, name,
                       slots, address, free_port, gpus))
BOOST_DESCRIBE_STRUCT(Welcome, (),
                      (protocol, version, term, refused, proof, received, host, identity, key_hex,
                       lease_ms, heartbeat_ms, orphan_grace_ms))

}  // namespace elasticrun::wire
