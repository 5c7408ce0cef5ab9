// See host_keys.hpp. Identities: "JOB/join", "JOB/step" and "JOB/host/7/1". "JOB/world/12" is only
// a name to derive a key by; the controller admits no peer with it.
#include "rendezvous/server/host_keys.hpp"

#include <fmt/format.h>

#include <charconv>

namespace elasticrun::rendezvous::server {

HostKey HostKeys::key(const std::string& identity) const {
  return {identity, net::to_hex(secret(identity))};
}

HostKey HostKeys::of_agent(HostId host, std::uint32_t run) const {
  return key(fmt::format("{}/host/{}/{}", job_, host.value, run));
}

HostKey HostKeys::to_join() const { return key(job_ + "/join"); }

HostKey HostKeys::of_step() const { return key(job_ + "/step"); }

std::string HostKeys::of_world(Generation generation) const {
  return net::to_hex(secret(fmt::format("{}/world/{}", job_, generation.value)));
}

std::optional<KeyOwner> HostKeys::owner(std::string_view identity) const {
  if (identity == job_ + "/join") return KeyOwner{};
  if (identity == job_ + "/step") return KeyOwner{no_host, 1};
  const std::string prefix = job_ + "/host/";
  if (!identity.starts_with(prefix)) return std::nullopt;
  KeyOwner owner{HostId(), 0};
  const char* const end = identity.data() + identity.size();
  const auto [slash, error] =
      std::from_chars(identity.data() + prefix.size(), end, owner.host.value);
  if (error == std::errc() && slash < end) std::from_chars(slash + 1, end, owner.run);
  // Each number has one spelling: "07" and "7x" are refused.
  if (owner.host == no_host || identity != of_agent(owner.host, owner.run).identity)
    return std::nullopt;
  return owner;
}

}  // namespace elasticrun::rendezvous::server
