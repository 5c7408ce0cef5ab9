// A scene as text, so that one that broke a rule can be read, shortened and kept:
//
//   seed=17
//   hosts=3
//   ...
//   fault 312.5ms hang host=2 slot=1 in=transfer
#pragma once

#include <string>

#include "base/result.hpp"
#include "simulate/faults/scene.hpp"

namespace elasticrun::simulate::faults {

std::string scene_text(const Scene& scene);
// Lines that begin with '#' are comments. Values that are not given are those of a plain scene.
Result<Scene> parse_scene(const std::string& text);

}  // namespace elasticrun::simulate::faults
