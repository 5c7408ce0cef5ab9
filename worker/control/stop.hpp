// Why a call of the interface does not return OK: thrown inside the library and turned into a
// status and an error text at its edge (c_api.cpp), so that no code in between has to pass it on.
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
