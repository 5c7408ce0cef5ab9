// Which key opens which door. The job's master key never leaves the controller; each agent that is
// started holds a key of its own that is derived from it and named after its host's number and the
// number of its start there. So no host can pass for another one or for the controller, and an
// agent that was given up is known when it comes back. A host that joins by itself begins with the
// join key, which opens nothing but the door to a number and a key of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "net/keys.hpp"

namespace elasticrun::rendezvous::server {

// Whose key it is.
struct KeyOwner {
  HostId host = no_host;  // no_host: anybody's who may join
  std::uint32_t run = 0;  // which of the host's agents: 1, 2, ...
  bool operator==(const KeyOwner&) const = default;
};

// As an agent is told about it.
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
  HostKey to_join() const;
  // By which the members of one world know each other: 64 hexadecimal digits.
  std::string of_world(Generation generation) const;

  // Whose key has that name. Nothing: it is none of this job's.
  std::optional<KeyOwner> owner(std::string_view identity) const;
  net::Secret secret(std::string_view identity) const { return net::derive(master_, identity); }

  const std::string& job() const { return job_; }

 private:
  HostKey key(const std::string& identity) const;

  std::string job_;
  net::Secret master_;
};

}  // namespace elasticrun::rendezvous::server
