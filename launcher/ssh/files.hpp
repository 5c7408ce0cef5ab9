// What an ssh connection needs of the caller's files.
//
// libssh would read them where it stands, on the thread that decides; a home on a file server that
// does not answer must not stop that. So they are read beforehand, by a FileThread, and libssh gets
// copies in memory.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "launcher/ssh/config.hpp"
#include "net/sockets.hpp"

namespace elasticrun::launcher::ssh {

// A file in memory, for who wants a path.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& text);
  std::string path() const;

 private:
  net::Fd fd_;
};

// By their paths; those that cannot be read are missing.
struct SshFiles {
  std::map<std::string, std::shared_ptr<MemoryFile>> known_hosts;
  std::map<std::string, std::string> identities;
};

// These touch files.
SshFiles read_ssh_files(const SshConfig& config);
// Makes file and folder where they are missing. False: it cannot be written to.
bool append_known_host(const std::string& path, const std::string& line);

}  // namespace elasticrun::launcher::ssh
