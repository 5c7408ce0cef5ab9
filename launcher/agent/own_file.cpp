// See own_file.hpp.
#include "launcher/agent/own_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include "launcher/bundle/content_hash.hpp"
#include "net/sockets.hpp"

namespace elasticrun::launcher::agent {
namespace {

constexpr const char* own_file = "/proc/self/exe";
constexpr std::string_view prefix = "agent-";
constexpr std::size_t piece = 256u << 10;

}  // namespace

bool own_file_is_damaged() {
  std::error_code error;
  const std::string name = std::filesystem::read_symlink(own_file, error).filename().string();
  if (!name.starts_with(prefix) || !bundle::is_content_hash(name.substr(prefix.size())))
    return false;
  const net::Fd file(::open(own_file, O_RDONLY | O_CLOEXEC));
  bundle::ContentHash hash;
  std::vector<char> bytes(piece);
  for (;;) {
    const ssize_t n = ::read(file.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return true;
    if (n == 0) return hash.text() != name.substr(prefix.size());
    hash.add({bytes.data(), static_cast<std::size_t>(n)});
  }
}

}  // namespace elasticrun::launcher::agent
