// Gathers a bundle on the controller's machine: the program as a shell would find it, and the
// libraries that it brings along (libraries.hpp); or a Python script or module, and the files that
// it brings along (python_files.hpp).
//
// The files stay open: if the program is rebuilt, we still send the one that was gathered. Small
// files of Python are kept in memory, because people edit them while the job runs. If another file
// is modified in place, the receiving host sees that the hash does not match.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "net/sockets.hpp"

namespace elasticrun::launcher::bundle {

struct BundleFile {
  std::string name;  // below the bundle's folder
  std::string path;  // full path, for messages
  bool executable = false;
  std::int64_t bytes = 0;
  net::Fd fd;
  std::string kept;  // the content, if there is no descriptor
};

struct Bundle {
  std::string hash;  // empty: nothing needs to be copied
  std::int64_t bytes = 0;
  std::vector<BundleFile> files;
};

struct BundleTrouble {
  int code = 126;    // exit code as of a shell: 126 or 127
  std::string text;  // message text for the user
};

// `command` is the program and its arguments. A Python module that is not found from the working
// directory is taken to be installed on each host: the bundle is empty.
std::variant<Bundle, BundleTrouble> gather_bundle(const std::vector<std::string>& command,
                                                  const std::vector<std::string>& env,
                                                  const std::string& cwd);

// Whether gather_bundle would find the program of the command, and copy it: not an interpreter.
bool program_can_be_copied(const std::vector<std::string>& command,
                           const std::vector<std::string>& env, const std::string& cwd);

// Up to `most` bytes from `offset` on; fewer, or none, at the end of the file.
Result<std::string> read_part(const BundleFile& file, std::int64_t offset, std::size_t most);

}  // namespace elasticrun::launcher::bundle
