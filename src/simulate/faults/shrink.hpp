// Finds the smallest scene that still breaks the same rule, for a developer to study.
#pragma once

#include <string>

#include "simulate/faults/scene.hpp"

namespace elasticrun::simulate::faults {

// Removes faults and complications, one after the other, as long as `rule` still breaks without
// them. Because a violation may depend on the order of messages alone, it also tries other dice.
Scene shrink(const Scene& scene, const std::string& rule);

}  // namespace elasticrun::simulate::faults
