// Which key opens which door. The job's master key never leaves the controller; each host holds a
// key of its own that is derived from it and named after the host's number, so that no host can
// pass for another one or for the controller. A host that joins by itself begins with the join key,
// which opens nothing but the door to a number and a key of its own.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "net/keys.hpp"

namespace elasticrun::rendezvous {

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

  HostKey of_host(HostId host) const;
  HostKey to_join() const;

  // Whose key has that name: a host, or no_host for the join key. Nothing: it is none of this
  // job's.
  std::optional<HostId> owner(std::string_view identity) const;
  net::Secret secret(std::string_view identity) const { return net::derive(master_, identity); }

  const std::string& job() const { return job_; }

 private:
  HostKey key(const std::string& identity) const;

  std::string job_;
  net::Secret master_;
};

}  // namespace elasticrun::rendezvous
