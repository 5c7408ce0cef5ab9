// Gathers a bundle on the machine of the controller: the program as a shell would find it, and the
// libraries that it brings along.
//
// The files stay open: a compiler that writes the program anew leaves us the one that is running.
// Should somebody write into one of them all the same, then the hash is wrong at the other end.
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
  std::string path;  // for messages
  bool executable = false;
  std::int64_t bytes = 0;
  net::Fd fd;
};

struct Bundle {
  std::string hash;
  std::int64_t bytes = 0;
  std::vector<BundleFile> files;  // the program is the last
};

struct BundleTrouble {
  int code = 126;    // as a shell: 126 or 127
  std::string text;  // for a person
};

std::variant<Bundle, BundleTrouble> gather_bundle(const std::string& program,
                                                  const std::vector<std::string>& env,
                                                  const std::string& cwd);

// Whether a program is there, as for gather_bundle.
bool program_is_there(const std::string& program, const std::vector<std::string>& env,
                      const std::string& cwd);

// So many bytes from there on; fewer, or none, at the end of the file.
Result<std::string> read_part(const BundleFile& file, std::int64_t offset, std::size_t most);

}  // namespace elasticrun::launcher::bundle
