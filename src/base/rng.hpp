// A small seeded random generator (splitmix64, Steele et al. 2014), passed in wherever random
// numbers are needed.
//
// std::mt19937 would do, but the distributions used with it differ between standard libraries, and
// a seed must give the same run everywhere.
#pragma once

#include <cstdint>

namespace elasticrun {

// The finaliser of splitmix64: a bijection of 64-bit words that mixes every bit.
constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

class Rng {
 public:
  explicit Rng(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15ULL); }
  // Uniform in [0, n); n > 0. The bias for n far below 2^64 does not matter here.
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  // Uniform in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  bool chance(double p) { return uniform() < p; }

 private:
  std::uint64_t state_;
};

}  // namespace elasticrun
