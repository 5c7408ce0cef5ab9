// What a worker has registered, as workers compare it: kinds, names, types and sizes, in order.
//
// One hash over the whole layout shows whether two layouts differ. A hash for each registration
// finds the first one that differs, whose text is shown to the user. Why not send all names: there
// may be many thousands of them, of any length. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "worker/collective/group.hpp"

namespace elasticrun::worker::state {

struct Registration {
  char kind = 's';  // 's': state, 'g': gradients, 'b': buffers, 'l': of a state source, later
  std::string name;
  collective::DataType type = {};  // of gradients and buffers
  std::uint64_t bytes = 0;
  bool operator==(const Registration&) const = default;
};
using Layout = std::vector<Registration>;

const char* kind_name(char kind);

std::uint64_t hash_of(const Layout& layout);
std::vector<std::uint64_t> hashes_of(const Layout& layout);

// The text for registration `at` (from 0): "gradients 'g' (float32 x 100)", "state 'w' (400
// bytes)", or "missing" past the last one. One line, shorter than registration_words_max for any
// name.
inline constexpr std::size_t registration_words_max = 160;
std::string words_for(const Layout& layout, std::size_t at);

}  // namespace elasticrun::worker::state
