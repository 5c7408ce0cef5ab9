// What travels with the bytes of the state, to newcomers and into saves, as text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "wire/saved/manifest.hpp"
#include "worker/state/layout.hpp"

namespace elasticrun::worker::state {

struct Carried {
  std::string progress;  // where training stands
  Layout late;           // the arrays of the state source, in their order
  std::string objects;   // of the state source
};

// `registered`: also named in the text, in front of the late ones, for those who read it without
// the program.
std::string encode(const Carried& carried, const Layout& registered = {});
// An error if no reader takes a text of this size; callers check before they send or write it.
Result<void> check_size(std::uint64_t text_bytes);
// Both leave out the arrays of `registered`.
Result<Carried> decode_carried(std::string_view text);
Result<Carried> carried_of(wire::saved::Contents contents);

}  // namespace elasticrun::worker::state
