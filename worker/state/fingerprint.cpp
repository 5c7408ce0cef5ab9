// See fingerprint.hpp.
#include "worker/state/fingerprint.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <memory>

#include "base/check.hpp"

namespace elasticrun::worker::state {
namespace {

constexpr std::size_t block = 4096;
constexpr std::size_t whole_below = 256 * block;

struct FreeHash {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

std::uint64_t look_at(const Segment& segment, const gpu::Gpu* gpu) {
  const std::unique_ptr<XXH3_state_t, FreeHash> hash(XXH3_createState());
  XXH3_64bits_reset(hash.get());
  std::vector<std::byte> copy;
  const auto take = [&](std::size_t offset, std::size_t bytes) {
    const std::byte* from = segment.data + offset;
    if (segment.on_gpu) {
      copy.resize(bytes);
      gpu->copy_and_wait(copy.data(), from, bytes, gpu->stream());
      from = copy.data();
    }
    XXH3_64bits_update(hash.get(), from, bytes);
  };
  if (segment.bytes <= whole_below) {
    take(0, segment.bytes);
  } else {
    constexpr std::size_t blocks = whole_below / block;
    const std::size_t last = segment.bytes - block;
    for (std::size_t i = 0; i < blocks; ++i)
      take(i + 1 == blocks ? last : last / (blocks - 1) * i, block);
  }
  return XXH3_64bits_digest(hash.get());
}

}  // namespace

Fingerprint::Fingerprint(const StateTable& table) {
  if (table.gpu()) table.gpu()->enter();
  for (const Segment& segment : table.state()) hashes_.push_back(look_at(segment, table.gpu()));
}

std::string Fingerprint::changed_since(const StateTable& table) const {
  const Fingerprint now(table);
  ER_CHECK(hashes_.size() == now.hashes_.size());
  std::string names;
  for (std::size_t i = 0; i < hashes_.size(); ++i)
    if (hashes_[i] != now.hashes_[i])
      names += fmt::format("{}'{}'", names.empty() ? "" : ", ", table.state()[i].name);
  return names;
}

}  // namespace elasticrun::worker::state
