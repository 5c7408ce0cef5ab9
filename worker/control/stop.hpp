// Why a call of the interface ends otherwise than well: thrown inside the library, turned into a
// status and a text at its edge (c_api.cpp), so that no line between has to pass it on.
#pragma once

#include <stdexcept>
#include <string>

#include "elasticrun/elasticrun.h"

namespace elasticrun::worker::control {

struct Stop : std::runtime_error {
  Stop(elasticrun_status s, const std::string& text) : std::runtime_error(text), status(s) {}
  elasticrun_status status;
};

}  // namespace elasticrun::worker::control
