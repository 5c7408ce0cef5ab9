// The start line: one line of JSON that an agent reads from its standard input before anything
// else.
//
// Standard input, and not the command line or the environment, because the line contains the host's
// key, and other users of the host can read those two. One line, because the stream below may be
// ssh's.
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
  std::string identity;  // TLS identity that belongs to the host's key
  std::string key_hex;   // the host's pre-shared key: 32 bytes, 64 hexadecimal digits
  Term term;
  HostId host;                         // id of the agent's host
  std::string name;                    // name of the host, for messages to the user
  std::vector<std::string> addresses;  // of the controller, numeric, to be tried in this order
  std::uint16_t port = 0;
  std::string
      network;  // of the data plane: interface, address or CIDR; empty: any that others can dial
  std::string address;  // of this host for other hosts, from the host file; empty: not given
  std::int64_t lease_ms = 10'000;
  std::int64_t heartbeat_ms = 500;
  std::int64_t orphan_grace_ms = 10'000;
  std::int64_t standstill_ms = 3'600'000;
  std::string version;  // of the controller; the agent's must be the same
  // When no address answers, the agent asks for the control stream to go through its standard input
  // and output: it writes a line to standard output that begins with this word. Empty: it cannot.
  std::string stream;
  std::int32_t slots = 0;  // of an agent that joins by itself: number of workers it takes
  std::string notice;      // command that says when this host will go; empty: none
};
BOOST_DESCRIBE_STRUCT(AgentStart, (),
                      (job, identity, key_hex, term, host, name, addresses, port, network, address,
                       lease_ms, heartbeat_ms, orphan_grace_ms, standstill_ms, version, stream,
                       slots, notice))

// What a host that joins by itself needs to know about the job: one line of JSON, in a file or on
// standard input.
struct JobKey {
  std::string job;
  std::string identity;
  std::string key_hex;
  std::string version;
};
BOOST_DESCRIBE_STRUCT(JobKey, (), (job, identity, key_hex, version))

// One line of JSON, newline included.
std::string encode(const AgentStart& start);
// Errors name the JSON member. Missing members keep their default, unknown ones are ignored.
// Durations must be positive (orphan_grace_ms and standstill_ms may be 0), and the key must have
// all its digits.
Result<AgentStart> decode_agent_start(std::string_view line);

std::string encode(const JobKey& key);
// `where` names the line's source in errors.
Result<JobKey> decode_job_key(std::string_view line, std::string_view where);

}  // namespace elasticrun::launcher::executors
