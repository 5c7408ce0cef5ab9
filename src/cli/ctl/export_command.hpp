// elasticctl export: the arrays of a save as a file that numpy or PyTorch reads.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/ctl/array_formats.hpp"
#include "cli/ctl/report.hpp"
#include "wire/saved/manifest.hpp"

namespace elasticrun::cli::ctl {

struct ExportCommand {
  std::string save;                // a save, or a folder of --save: the newest one in it
  std::string file;                // ends in .npz or .pt
  std::vector<std::string> types;  // TYPE or NAME=TYPE
};

// The arrays with their types. What is registered as state is bytes to us, so its type is one of
// `types`, or uint8; buffers have their own. Pure.
Result<std::vector<FlatArray>> typed(const std::vector<wire::saved::Array>& arrays,
                                     const std::vector<std::string>& types);

Result<Report> export_command(const ExportCommand& command);

}  // namespace elasticrun::cli::ctl
