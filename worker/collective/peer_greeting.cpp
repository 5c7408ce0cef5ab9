// See peer_greeting.hpp. Layout: magic (8 bytes), generation (8), from (4), to (4), tag (32);
// numbers are big endian.
#include "worker/collective/peer_greeting.hpp"

#include <sodium.h>

namespace elasticrun::worker::collective {
namespace {

constexpr std::string_view magic = "erpeer01";

void append(std::string& out, std::uint64_t number, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
    out += static_cast<char>(number >> shift & 255);
}

std::int32_t rank_at(std::string_view text, std::size_t begin) {
  std::uint32_t number = 0;
  for (const char byte : text.substr(begin, 4))
    number = number << 8 | static_cast<unsigned char>(byte);
  return static_cast<std::int32_t>(number);
}

}  // namespace

PeerGreeting::PeerGreeting(std::string_view secret, Generation generation)
    : generation_(generation) {
  std::size_t size = 0;
  const bool whole = sodium_hex2bin(key_.data(), key_.size(), secret.data(), secret.size(), nullptr,
                                    &size, nullptr) == 0 &&
                     size == key_.size();
  if (!whole) key_ = {};
}

std::string PeerGreeting::tag(std::string_view message) const {
  std::string tag(crypto_auth_hmacsha256_BYTES, '\0');
  crypto_auth_hmacsha256(reinterpret_cast<unsigned char*>(tag.data()),
                         reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                         key_.data());
  return tag;
}

std::string PeerGreeting::greeting(Rank from, Rank to) const {
  std::string text(magic);
  append(text, generation_.value, 8);
  append(text, static_cast<std::uint32_t>(from.value), 4);
  append(text, static_cast<std::uint32_t>(to.value), 4);
  return text + tag(text);
}

// The tag of another message than the greeting's, so that a greeting cannot be sent back as an
// answer.
std::string PeerGreeting::answer(Rank from, Rank to) const {
  return tag("answer" + greeting(from, to));
}

std::optional<Rank> PeerGreeting::sender(std::string_view text, Rank to) const {
  if (text.size() != greeting_bytes) return std::nullopt;
  const Rank from(rank_at(text, magic.size() + 8));
  if (!same_tag(text, greeting(from, to))) return std::nullopt;
  return from;
}

bool same_tag(std::string_view a, std::string_view b) {
  return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace elasticrun::worker::collective
