// How two ranks of one world identify each other: the first bytes of each connection between them.
//
// The rank that dials sends its own rank and the one it dials, with a tag that only a member of
// this world can make; the other rank answers with a tag of its own. Each world has a secret, which
// its members received over the control channel, so a port scanner, or a worker of another job or
// of an older world, cannot take a member's place. What follows on the connection is neither signed
// nor encrypted.
//
// HMAC-SHA256 comes from libsodium and not from OpenSSL: this code is in the user's process, which
// may have an OpenSSL of its own.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.hpp"

namespace elasticrun::worker::collective {

class PeerGreeting {
 public:
  static constexpr std::size_t greeting_bytes = 8 + 8 + 4 + 4 + 32;
  static constexpr std::size_t answer_bytes = 32;

  // `secret`: 64 hexadecimal digits; anything else counts as a key of zeros, which is no secret,
  // but enough for a world of one.
  PeerGreeting(std::string_view secret, Generation generation);

  // What rank `from` sends when it has dialled rank `to`, and what it must receive in return.
  std::string greeting(Rank from, Rank to) const;
  std::string answer(Rank from, Rank to) const;
  // The rank that has sent this greeting to rank `to`; nullopt: it was no member of this world.
  std::optional<Rank> sender(std::string_view greeting, Rank to) const;

 private:
  std::string tag(std::string_view message) const;

  std::array<unsigned char, 32> key_{};
  Generation generation_;
};

// Compares in a time that does not depend on where the tags differ.
bool same_tag(std::string_view a, std::string_view b);

}  // namespace elasticrun::worker::collective
