// The files that a Python script or package brings along: what it can import from its own folder,
// and the small text files that lie among its modules.
//
// They are chosen by name and place. Asking Python for the imports would miss those that are made
// late or by name, and would run the program here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace elasticrun::launcher::bundle {

// A larger text file is taken for data, which the program has to find by itself.
inline constexpr std::int64_t text_bytes_max = 1 << 20;
// A script beside a data set must not make us read a file server's directories for minutes.
inline constexpr std::size_t entries_max = 100'000;

struct PythonFile {
  std::string name;  // below `root`
  std::string path;
  std::int64_t bytes = 0;
};

// The files of the folder `root`, or of its subfolder `package` alone if that is not empty:
// - Python files (*.py), in all folders below, too;
// - compiled modules (*.so) and small text files, in folders that have Python files, and anywhere
//   in a package (a folder with __init__.py).
// Not: what is hidden, what Python has compiled, virtual environments, links to folders, and links
// that lead out of the folder. An error says that the folder holds more than `most` entries.
Result<std::vector<PythonFile>> python_files(const std::string& root, const std::string& package,
                                             std::size_t most = entries_max);

}  // namespace elasticrun::launcher::bundle
