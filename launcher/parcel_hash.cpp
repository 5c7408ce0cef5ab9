// See parcel_hash.hpp.
#include "launcher/parcel_hash.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace elasticrun::launcher {
namespace {

constexpr std::size_t name_bytes_max = 255;  // of Linux

}  // namespace

void ParcelHash::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

ParcelHash::ParcelHash() : state_(XXH3_createState()) {
  ER_CHECK(state_ && XXH3_128bits_reset(state_.get()) == XXH_OK);
}

void ParcelHash::add(std::string_view bytes) {
  XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
  bytes_ += bytes.size();
}

// The length stands behind the bytes, so that who takes a parcel need not know it before.
void ParcelHash::end_file(std::string_view name, bool executable) {
  const std::string end =
      fmt::format("{} {} {} {}", std::exchange(bytes_, 0), executable, name.size(), name);
  XXH3_128bits_update(state_.get(), end.data(), end.size());
}

std::string ParcelHash::text() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

bool is_parcel_hash(std::string_view text) {
  return text.size() == 32 && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

bool is_parcel_file(std::string_view name) {
  return !name.empty() && name.size() <= name_bytes_max && name != "." && name != ".." &&
         name.find('/') == name.npos && name.find('\0') == name.npos;
}

std::string parcel_file_of(std::string_view program) {
  return std::string(program.substr(program.rfind('/') + 1));  // npos + 1 is 0
}

}  // namespace elasticrun::launcher
