// What a worker has registered, as workers compare it: kinds, names, types and sizes, in order.
//
// One hash over all says that two layouts differ; where, a person learns from a hash for each
// registration and the words for the first one that differs. Why not send all names: there may be
// many thousands of them, of any length. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "worker/collective/group.hpp"

namespace elasticrun::worker::state {

struct Registration {
  char kind = 's';  // state, gradients, buffers
  std::string name;
  collective::DataType type =
      collective::DataType::float64;  // of numbers; the same in all registrations
  std::uint64_t bytes = 0;
};
using Layout = std::vector<Registration>;

const char* kind_name(char kind);

std::uint64_t hash_of(const Layout& layout);
std::vector<std::uint64_t> hashes_of(const Layout& layout);

// "gradients 'g' (float32 x 100)", "state 'w' (400 bytes)", or "missing" behind the last one. One
// line shorter than registration_words_max, whatever the name.
inline constexpr std::size_t registration_words_max = 160;
std::string words_for(const Layout& layout, std::size_t at);

}  // namespace elasticrun::worker::state
