// The name of a worker's log file (pure).
//
// A part of it is the name of a host, and one that joins by itself chooses that: it must not lead
// out of the log folder, nor be one that other programs take for an option or do not show.
#pragma once

#include <cstdint>
#include <string>

#include "job/report/sink.hpp"

namespace elasticrun::cli::run {

// "node1.0.worker2.out"; stream: 1 or 2. No two workers of a job have the same.
std::string log_name(const job::report::WorkerLabel& speaker, std::int32_t stream);

}  // namespace elasticrun::cli::run
