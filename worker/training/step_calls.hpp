// The collectives that a rank has called in the step under way of its own loop. All ranks must call
// the same ones in the same order; where their sizes fit, a sum of numbers of another type would
// come out wrong without an error. So the calls are compared in the commit: kinds, types, sizes and
// roots, not the memory. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/hash.hpp"
#include "worker/collective/data_type.hpp"

namespace elasticrun::worker::training {

// What of a call must be alike on all ranks: "all_reduce of 100 float32".
std::string all_reduce_call(collective::DataType type, std::size_t count);
std::string broadcast_call(std::size_t bytes, int root);
inline constexpr const char* barrier_call = "barrier";

class StepCalls {
 public:
  void clear() { *this = {}; }
  void add(std::string call);

  bool none() const { return number_ == 0; }
  std::uint64_t hash() const { return hash_.value(); }
  // All of them in order, as a text; of many the first ones.
  std::string words() const;

 private:
  static constexpr std::size_t most_kept = 8;
  std::vector<std::string> first_;
  std::size_t number_ = 0;
  Hash hash_;
};

}  // namespace elasticrun::worker::training
