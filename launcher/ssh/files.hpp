// The caller's files that an ssh connection needs.
//
// libssh would read them inside its calls, on the thread that makes the decisions; a home directory
// on a file server that does not answer must not stop that thread. So a FileThread reads them
// beforehand, and libssh gets copies in memory.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "launcher/ssh/config.hpp"
#include "net/sockets.hpp"

namespace elasticrun::launcher::ssh {

// A file in memory, for a library that wants a path.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& text);
  std::string path() const;

 private:
  net::Fd fd_;
};

// File contents by path; files that cannot be read are missing.
struct SshFiles {
  std::map<std::string, std::shared_ptr<MemoryFile>> known_hosts;
  std::map<std::string, std::string> identities;
};

// This function and the next one touch files.
SshFiles read_ssh_files(const SshConfig& config);
// Appends a line; creates file and folder if missing. False: the file cannot be written to.
bool append_known_host(const std::string& path, const std::string& line);

}  // namespace elasticrun::launcher::ssh
