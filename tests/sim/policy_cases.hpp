// Random cases for everything that chooses a size, and rules that must hold whatever the cluster
// does (policies.cpp).
//
// There are two kinds. A controller's case tells the autoscaler what a real controller would tell
// it, including garbled reports and failed changes, and checks each answer. A simulation is
// `elasticctl simulate` of a described cluster with mishaps, and checks the result. The first kind
// tests more of the policies; the second is what people run.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/rng.hpp"

namespace elasticrun::sim {

// Thrown when a rule is broken: the rule, and what was the case instead.
struct Broken {
  std::string rule;
  std::string text;
};

inline void require(bool holds, std::string_view rule, const std::string& text) {
  if (!holds) throw Broken{std::string(rule), text};
}

// A random number from low to high; each order of magnitude is as likely as another.
inline double between(Rng& rng, double low, double high) {
  return low * std::pow(high / low, rng.uniform());
}

// Takes a line of the story; empty when the story is not wanted.
using Tell = std::function<void(const std::string&)>;

// Each throws when a rule breaks; everything follows from the seed.
void play_controller(std::uint64_t seed, const Tell& tell);
void play_simulation(std::uint64_t seed, const Tell& tell);

}  // namespace elasticrun::sim
