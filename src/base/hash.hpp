// A 64-bit hash of numbers and texts in their order, by which the members of a world compare what
// must be alike. Not for memory (xxhash does that), and not against an adversary.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/rng.hpp"

namespace elasticrun {

class Hash {
 public:
  void add(std::uint64_t x) { value_ = mix(value_ * 31 + x + 1); }
  void add(std::string_view text) {
    add(text.size());
    for (const char c : text) add(static_cast<unsigned char>(c));
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

}  // namespace elasticrun
