// The smallest scene that still breaks the same rule: what a person reads to see why.
#pragma once

#include <string>

#include "simulate/faults/scene.hpp"

namespace elasticrun::simulate::faults {

// Takes faults and complications away, one after the other, as long as `rule` breaks without them.
// Where it breaks by the order of messages alone, other dice are tried as well.
Scene shrink(const Scene& scene, const std::string& rule);

}  // namespace elasticrun::simulate::faults
