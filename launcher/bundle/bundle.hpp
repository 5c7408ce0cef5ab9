// Gathers a bundle on the controller's machine: the program as a shell would find it, and the
// libraries that it brings along (libraries.hpp).
//
// The files stay open: if the program is rebuilt, we still send the one that was gathered. If a
// file is modified in place all the same, the receiving host sees that the hash does not match.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "net/sockets.hpp"

namespace elasticrun::launcher::bundle {

struct BundleFile {
  std::string name;  // without folders
  std::string path;  // full path, for messages
  bool executable = false;
  std::int64_t bytes = 0;
  net::Fd fd;
};

struct Bundle {
  std::string hash;
  std::int64_t bytes = 0;
  std::vector<BundleFile> files;  // the program is the last one
};

struct BundleTrouble {
  int code = 126;    // exit code as of a shell: 126 or 127
  std::string text;  // message text for the user
};

std::variant<Bundle, BundleTrouble> gather_bundle(const std::string& program,
                                                  const std::vector<std::string>& env,
                                                  const std::string& cwd);

// Whether the program exists and can be run, by the same search as gather_bundle.
bool program_is_there(const std::string& program, const std::vector<std::string>& env,
                      const std::string& cwd);

// Up to `most` bytes from `offset` on; fewer, or none, at the end of the file.
Result<std::string> read_part(const BundleFile& file, std::int64_t offset, std::size_t most);

}  // namespace elasticrun::launcher::bundle
