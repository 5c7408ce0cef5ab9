// See host_keys.hpp. Identities: "JOB/join", "JOB/host/7".
#include "rendezvous/host_keys.hpp"

#include <fmt/format.h>

#include <charconv>

namespace elasticrun::rendezvous {

HostKey HostKeys::key(const std::string& identity) const {
  return {identity, net::to_hex(secret(identity))};
}

HostKey HostKeys::of_host(HostId host) const {
  return key(fmt::format("{}/host/{}", job_, host.value));
}

HostKey HostKeys::to_join() const { return key(job_ + "/join"); }

std::optional<HostId> HostKeys::owner(std::string_view identity) const {
  if (identity == job_ + "/join") return no_host;
  const std::string prefix = job_ + "/host/";
  if (!identity.starts_with(prefix)) return std::nullopt;
  HostId host;
  std::from_chars(identity.data() + prefix.size(), identity.data() + identity.size(), host.value);
  // One name a number: "07" or "7x" is none.
  if (host == no_host || identity != prefix + std::to_string(host.value)) return std::nullopt;
  return host;
}

}  // namespace elasticrun::rendezvous
