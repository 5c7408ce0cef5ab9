// Random cases for everything that chooses a size: what is played, and what must hold whatever the
// cluster does (policies.cpp).
//
// Two kinds, for two ways in. A controller's case tells the autoscaler what a real controller would
// be told, garbled reports and failed changes among it, and looks at each answer. A simulation is
// `elasticctl simulate` of a described cluster with mishaps, looked at by what came out. The first
// one sees more of the policies; the second one is what people run.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/rng.hpp"

namespace elasticrun::sim {

// Thrown: what should have held, and what was the case.
struct Broken {
  std::string rule;
  std::string text;
};

inline void require(bool holds, std::string_view rule, const std::string& text) {
  if (!holds) throw Broken{std::string(rule), text};
}

// From low to high, each order of magnitude as likely as another.
inline double between(Rng& rng, double low, double high) {
  return low * std::pow(high / low, rng.uniform());
}

// Hears a line of the story; empty when nobody listens.
using Tell = std::function<void(const std::string&)>;

// Each throws when a rule breaks; everything follows from the seed.
void play_controller(std::uint64_t seed, const Tell& tell);
void play_simulation(std::uint64_t seed, const Tell& tell);

}  // namespace elasticrun::sim
