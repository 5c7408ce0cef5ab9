// See content_hash.hpp.
#include "launcher/bundle/content_hash.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

#include "base/check.hpp"

namespace elasticrun::launcher::bundle {

void ContentHash::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

ContentHash::ContentHash() : state_(XXH3_createState()) {
  ER_CHECK(state_ && XXH3_128bits_reset(state_.get()) == XXH_OK);
}

void ContentHash::add(std::string_view bytes) {
  XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
}

std::string ContentHash::text() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

bool is_content_hash(std::string_view text) {
  return text.size() == 32 && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace elasticrun::launcher::bundle
