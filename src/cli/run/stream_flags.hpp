// The part of the conversion for the flags that say where which lines of output go.
#pragma once

#include "base/result.hpp"
#include "cli/run/settings.hpp"
#include "job/streams.hpp"

namespace elasticrun::cli::run {

// --redirects, --tee and --local-ranks-filter in torchrun's notation. An error also when lines
// should go to log files and there is no --log-dir.
Result<job::Streams> read_stream_flags(const Settings& settings);

}  // namespace elasticrun::cli::run
