// Keys of 32 bytes and what is made of them: keys for others, and tags that prove a key.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace elasticrun::net {

using Secret = std::array<unsigned char, 32>;

// From the system's generator; ends the program when that has none.
Secret random_secret();

// The key for one purpose, by HKDF-SHA256 (RFC 5869): who has it learns nothing about `master` or
// about the key for another purpose.
Secret derive(const Secret& master, std::string_view purpose);

// HMAC-SHA256 (RFC 2104).
Secret tag(const Secret& key, std::string_view message);

// 64 hexadecimal digits, in lower case. Nothing: the text is no such number.
std::string to_hex(const Secret& secret);
std::optional<Secret> from_hex(std::string_view digits);

}  // namespace elasticrun::net
