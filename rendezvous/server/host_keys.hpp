// The keys of a job. The master key never leaves the controller. Each agent that is started holds
// its own key, which is derived from the master key and named after the number of its host and the
// count of agents started there. So no host can pass for another one or for the controller, and an
// agent that was given up is recognised when it comes back. A host that joins by itself begins with
// the join key, which is good for nothing but to get a host number and an agent key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "net/keys.hpp"

namespace elasticrun::rendezvous::server {

// The agent that a key belongs to.
struct KeyOwner {
  HostId host = no_host;  // no_host: one of the keys that several agents begin with
  std::uint32_t run = 0;  // which of the host's agents: 1, 2, ...; of no_host: see below
  bool operator==(const KeyOwner&) const = default;
};

// A key as it is given to an agent.
struct HostKey {
  std::string identity;
  std::string key_hex;
};

class HostKeys {
 public:
  // `job` is a part of each identity, which is sent in clear.
  explicit HostKeys(std::string job = {}, const net::Secret& master = {})
      : job_(std::move(job)), master_(master) {}

  HostKey of_agent(HostId host, std::uint32_t run) const;
  // Two keys that are good for nothing but to get an agent key: of hosts that join by themselves
  // (run 0), and of agents that were started together, which may only be the hosts that are awaited
  // (run 1).
  HostKey to_join() const;
  HostKey of_step() const;
  // The secret by which the members of one world authenticate each other: 64 hexadecimal digits.
  std::string of_world(Generation generation) const;

  // The owner of the key with this name; nullopt: it is not a key of this job.
  std::optional<KeyOwner> owner(std::string_view identity) const;
  net::Secret secret(std::string_view identity) const { return net::derive(master_, identity); }

  const std::string& job() const { return job_; }

 private:
  HostKey key(const std::string& identity) const;

  std::string job_;
  net::Secret master_;
};

}  // namespace elasticrun::rendezvous::server
