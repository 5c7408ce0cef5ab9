// See files.hpp.
#include "launcher/ssh/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

namespace elasticrun::launcher::ssh {
namespace {

std::optional<std::string> text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file) return std::nullopt;
  return std::move(text).str();
}

bool write(int fd, const std::string& text) {
  return ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

}  // namespace

MemoryFile::MemoryFile(const std::string& text) : fd_(::memfd_create("elasticrun", MFD_CLOEXEC)) {
  if (!write(fd_.get(), text)) fd_ = net::Fd();
}

std::string MemoryFile::path() const {
  return fd_.get() < 0 ? "/dev/null" : fmt::format("/proc/self/fd/{}", fd_.get());
}

SshFiles read_ssh_files(const SshConfig& config) {
  SshFiles files;
  for (const auto* paths : {&config.user_known_hosts, &config.global_known_hosts})
    for (const std::string& path : *paths)
      if (const auto text = text_of(path))
        files.known_hosts[path] = std::make_shared<MemoryFile>(*text);
  for (const std::string& path : config.identities)
    if (auto text = text_of(path)) files.identities[path] = std::move(*text);
  return files;
}

bool append_known_host(const std::string& path, const std::string& line) {
  ::mkdir(std::filesystem::path(path).parent_path().c_str(), 0700);
  const net::Fd file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  return write(file.get(), line);
}

}  // namespace elasticrun::launcher::ssh
