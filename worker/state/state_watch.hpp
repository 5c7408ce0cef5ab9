// Whether compute has changed registered state, which it must not: a step that is repeated would
// then be another one, and the workers' states would drift apart.
//
// The state is hashed before compute and after it, in the first step of each world and then so
// rarely that it costs a thousandth of the time. A large state is looked at in parts, one after the
// other. Why not in every step: reading the state twice would cost more than many a step. What lies
// on the GPU is not looked at. The time comes in as a parameter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "worker/state/state.hpp"

namespace elasticrun::worker::state {

class StateWatch {
 public:
  // Bytes that one look takes in: a millisecond or two.
  static constexpr std::size_t part_bytes = 4u << 20;
  // After a look there is none for so many times its estimated cost.
  static constexpr int pause = 1000;

  // Of a sealed table, which outlives this.
  explicit StateWatch(const StateTable& table, std::size_t bytes = part_bytes);

  // Before the first call of compute in a step: looks, when it is time to.
  void begin(Generation world, Time now);
  // After the last one: the name of what compute has changed, as far as this step was looked at.
  std::optional<std::string> changed();

 private:
  struct Piece {
    std::string name;
    const std::byte* data = nullptr;
    std::size_t bytes = 0;  // no more than one look takes in
    std::uint64_t hash = 0;
  };

  const std::size_t bytes_;
  std::vector<Piece> pieces_;
  std::size_t first_ = 0, last_ = 0;  // pieces of the present look; none: this step has no look
  Generation world_;
  Time next_{};
};

}  // namespace elasticrun::worker::state
