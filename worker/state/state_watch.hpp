// Detects that compute has changed registered state, which it must not: a repeated step would then
// differ from the first attempt, and the workers' states would drift apart.
//
// The state is hashed before and after compute, in the first step of each world and then so rarely
// that it costs a thousandth of the time. A large state is checked in parts, one after the other.
// Why not in every step: reading the state twice would take longer than many a step. Memory on the
// GPU is not checked. The time is a parameter.
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
  // Bytes checked in one step: a millisecond or two.
  static constexpr std::size_t part_bytes = 4u << 20;
  // After a check there is none for `pause` times its estimated cost.
  static constexpr int pause = 1000;

  // `table` is sealed and outlives this; `bytes` is the most to check in one step.
  explicit StateWatch(const StateTable& table, std::size_t bytes = part_bytes);

  // Called before the first call of compute in a step: hashes the next part when a check is due.
  void begin(Generation world, Time now);
  // Called after the last call of compute: the name of an array that compute has changed, in the
  // part checked in this step; nullopt: none.
  std::optional<std::string> changed();

 private:
  struct Piece {
    std::string name;
    const std::byte* data = nullptr;
    std::size_t bytes = 0;  // at most what is checked in one step
    std::uint64_t hash = 0;
  };

  const std::size_t bytes_;
  std::vector<Piece> pieces_;
  std::size_t first_ = 0, last_ = 0;  // pieces checked in this step, one past; equal: no check
  Generation world_;
  Time next_{};
};

}  // namespace elasticrun::worker::state
