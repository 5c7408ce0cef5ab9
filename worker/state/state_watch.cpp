// See state_watch.hpp.
#include "worker/state/state_watch.hpp"

#include <xxhash.h>

#include <algorithm>
#include <utility>

namespace elasticrun::worker::state {
namespace {

// The estimated cost of both hashes of a check: reading memory that is in no cache, and the calls.
Duration cost_of(std::size_t bytes) {
  constexpr double bytes_per_ns = 4;
  return std::chrono::microseconds(1) +
         Duration(static_cast<std::int64_t>(2 * static_cast<double>(bytes) / bytes_per_ns));
}

}  // namespace

StateWatch::StateWatch(const StateTable& table, std::size_t bytes) : bytes_(bytes) {
  for (const Segment& memory : table.state()) {
    if (memory.on_gpu) continue;
    for (std::size_t at = 0; at < memory.bytes; at += bytes)
      pieces_.push_back({memory.name, memory.data + at, std::min(bytes, memory.bytes - at)});
  }
}

void StateWatch::begin(Generation world, Time now) {
  first_ = last_ == pieces_.size() ? 0 : last_;
  last_ = first_;
  const bool new_world = std::exchange(world_, world) != world;
  if (!new_world && now < next_) return;
  std::size_t seen = 0;
  for (; last_ < pieces_.size() && seen + pieces_[last_].bytes <= bytes_; ++last_) {
    pieces_[last_].hash = XXH3_64bits(pieces_[last_].data, pieces_[last_].bytes);
    seen += pieces_[last_].bytes;
  }
  next_ = now + pause * cost_of(seen);
}

std::optional<std::string> StateWatch::changed() {
  for (std::size_t i = first_; i < last_; ++i)
    if (XXH3_64bits(pieces_[i].data, pieces_[i].bytes) != pieces_[i].hash) return pieces_[i].name;
  return {};
}

}  // namespace elasticrun::worker::state
