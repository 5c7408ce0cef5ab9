// --dry-run: describes the plan of a job as text, made by the functions that a real run uses.
#pragma once

#include <string>

#include "job/spec.hpp"

namespace elasticrun::cli::run {

std::string describe(const job::JobSpec& spec);

}  // namespace elasticrun::cli::run
