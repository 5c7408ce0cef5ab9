// See file_hash.hpp.
#include "launcher/bundle/file_hash.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "launcher/bundle/content_hash.hpp"
#include "net/sockets.hpp"

namespace elasticrun::launcher::bundle {

Result<std::string> hash_of_file(const std::string& path) {
  const net::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ContentHash hash;
  std::vector<char> bytes(256u << 10);
  for (;;) {
    const ssize_t n = file.get() < 0 ? -1 : ::read(file.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error{fmt::format("cannot read {}: {}", path, net::error_text(errno)), errno};
    if (n == 0) return ok(hash.text());
    hash.add({bytes.data(), static_cast<std::size_t>(n)});
  }
}

}  // namespace elasticrun::launcher::bundle
