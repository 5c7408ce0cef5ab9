// What an agent is told on its standard input before anything else: one line of JSON.
//
// Standard input and not the command line or the environment, because the host's key is in it, and
// those two can be read by others on the host. One line, because the stream under it may be ssh's.
#pragma once

#include <boost/describe/class.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"

namespace elasticrun::launcher::executors {

inline constexpr std::size_t agent_start_bytes_max = 64u << 10;

struct AgentStart {
  std::string job;       // job id
  std::string identity;  // names the host's key
  std::string key_hex;   // the host's pre-shared key: 32 bytes, 64 digits
  Term term;
  HostId host;                         // which host this is
  std::string name;                    // its name, for messages to people
  std::vector<std::string> addresses;  // of the controller, numeric, to be tried in this order
  std::uint16_t port = 0;
  std::string
      network;  // of the data plane: interface, address or CIDR; empty: what others can dial
  std::string address;  // of this host for the others, as the host file has it; empty: not said
  std::int64_t lease_ms = 10'000;
  std::int64_t heartbeat_ms = 500;
  std::int64_t orphan_grace_ms = 10'000;
  std::string version;  // of the controller; the agent's must be the same
  // When no address answers: the word that begins the line on standard output which asks for the
  // control stream to go through standard input and output. Empty: it cannot.
  std::string stream;
  std::int32_t slots = 0;  // of an agent that joins by itself: workers it takes
};
BOOST_DESCRIBE_STRUCT(AgentStart, (),
                      (job, identity, key_hex, term, host, name, addresses, port, network, address,
                       lease_ms, heartbeat_ms, orphan_grace_ms, version, stream, slots))

// What a host that joins by itself has to know of the job: one line of JSON, in a file or on
// standard input.
struct JobKey {
  std::string job;
  std::string identity;
  std::string key_hex;
  std::string version;
};
BOOST_DESCRIBE_STRUCT(JobKey, (), (job, identity, key_hex, version))

// One line, newline included.
std::string encode(const AgentStart& start);
// Errors name the member; missing members keep their default, unknown ones are ignored. Durations
// must be positive (a grace time may be 0), the key whole.
Result<AgentStart> decode_agent_start(std::string_view line);

std::string encode(const JobKey& key);
// `where` it was found, for errors.
Result<JobKey> decode_job_key(std::string_view line, std::string_view where);

}  // namespace elasticrun::launcher::executors
