// See private_directory.hpp.
#include "launcher/agent/workers/private_directory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>

namespace elasticrun::launcher::agent::workers {
namespace {

constexpr std::string_view random_letters = "XXXXXX";
constexpr std::size_t host_letters_max = 16;
constexpr time_t young = 60;  // s; the agent of a younger directory may be about to lock or listen

// Many hosts may share a TMPDIR, and nothing here can find out whether another host's agent lives.
// So the directory's name contains the host's. The end of a host's name is what differs among many
// hosts.
std::string prefix() {
  char host[HOST_NAME_MAX + 1] = {};
  if (::gethostname(host, HOST_NAME_MAX) != 0) host[0] = '\0';
  std::string name = std::string(host).substr(0, std::string_view(host).find('.'));
  std::erase_if(name, [](unsigned char c) { return !std::isalnum(c) && c != '-'; });
  if (name.size() > host_letters_max) name.erase(0, name.size() - host_letters_max);
  return fmt::format("elasticrun-{}-", name.empty() ? "host" : name);
}

bool is_locked(const std::string& path) {
  const net::Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return directory.get() >= 0 && ::flock(directory.get(), LOCK_EX | LOCK_NB) != 0 &&
         errno == EWOULDBLOCK;
}

// Removes what a loss of power, or of agent and watchdog at once, has left behind: a directory of
// ours that no process has locked, with a socket that no process listens on.
void remove_abandoned(const std::string& base) {
  const std::string begin = prefix();
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(base, error)) {
    const std::string path = entry.path().string();
    const std::string name = entry.path().filename().string();
    struct stat status {};
    if (!name.starts_with(begin) || name.size() != begin.size() + random_letters.size() ||
        ::lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
        status.st_uid != ::geteuid() || status.st_mtime > ::time(nullptr) - young)
      continue;
    if (!is_locked(path) && net::nobody_listens(path + "/agent.sock")) remove_directory(path);
  }
}

}  // namespace

// The path of the socket must fit into sockaddr_un (108 bytes), which it does not in a TMPDIR deep
// in a batch system's tree; hence /tmp as the last resort.
Result<PrivateDirectory> make_private_directory() {
  const char* const bases[] = {std::getenv("TMPDIR"), "/tmp"};
  std::string why;
  for (const char* base : bases) {
    if (!base || base[0] != '/') continue;
    std::string path = fmt::format("{}/{}{}", base, prefix(), random_letters);
    if (path.size() + std::strlen("/agent.sock") >= sizeof(sockaddr_un{}.sun_path)) {
      why = "the path is too long for a socket";
    } else if (!::mkdtemp(path.data())) {
      why = std::strerror(errno);
    } else {
      net::Fd lock = lock_directory(path);
      remove_abandoned(base);
      return PrivateDirectory{std::move(path), std::move(lock)};
    }
  }
  return Error{"no private directory can be made in TMPDIR or /tmp: " + why};
}

net::Fd lock_directory(const std::string& path) {
  net::Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (directory.get() >= 0 && ::flock(directory.get(), LOCK_EX | LOCK_NB) == 0) return directory;
  return net::Fd();
}

void touch(const std::string& path) {
  ::utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

void remove_directory(const std::string& directory) {
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
}

}  // namespace elasticrun::launcher::agent::workers
