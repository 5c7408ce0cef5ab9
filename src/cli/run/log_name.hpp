// The name of a worker's log file (pure).
//
// The name contains the name of the host, and a host that joins by itself chooses its own name. So
// the file name must not lead out of the log folder, and must not be one that other programs take
// for an option or do not show.
#pragma once

#include <cstdint>
#include <string>

#include "job/report/sink.hpp"

namespace elasticrun::cli::run {

// For example "node1.0.worker2.out": host, slot, worker. stream: 1 (out) or 2 (err). No two workers
// of a job have the same name.
std::string log_name(const job::report::WorkerLabel& label, std::int32_t stream);

}  // namespace elasticrun::cli::run
