// Keys of 32 bytes and what is made from them: derived keys, and tags that prove possession.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace elasticrun::net {

using Secret = std::array<unsigned char, 32>;

// From the system's generator; ends the program if that fails.
Secret random_secret();

// The key for one purpose, by HKDF-SHA256 (RFC 5869). Its holder learns nothing about `master` or
// about the key for another purpose.
Secret derive(const Secret& master, std::string_view purpose);

// HMAC-SHA256 (RFC 2104).
Secret tag(const Secret& key, std::string_view message);

// 64 hexadecimal digits, in lower case. nullopt: the text is not of this form.
std::string to_hex(const Secret& secret);
std::optional<Secret> from_hex(std::string_view digits);

}  // namespace elasticrun::net
