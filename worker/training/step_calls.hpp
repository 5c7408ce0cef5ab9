// The collectives that a rank has called in the step under way of its own loop. All ranks must call
// the same ones in the same order: with equal sizes, a sum of other numbers, or of another type,
// would come out wrong without an error. Their hashes are compared in the commit. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "worker/collective/data_type.hpp"

namespace elasticrun::worker::training {

class StepCalls {
 public:
  void clear();
  void all_reduce(collective::DataType type, std::size_t count);
  void broadcast(std::size_t bytes, int root);
  void barrier();

  bool none() const { return number_ == 0; }
  std::uint64_t hash() const { return hash_; }
  // All of them in order, as a text; of many the first ones.
  std::string words() const;

 private:
  struct Call {
    std::string_view what;
    std::uint64_t size = 0;  // numbers or bytes
    std::string_view unit;   // of the size; empty: it has none
    int root = -1;           // -1: none
  };
  void add(const Call& call);

  static constexpr std::size_t most_kept = 8;
  std::vector<Call> first_;
  std::size_t number_ = 0;
  std::uint64_t hash_ = 0;
};

}  // namespace elasticrun::worker::training
