#include "launcher/join_key.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "net/sockets.hpp"

namespace elasticrun::launcher {

// Beside it first, then renamed over: nobody reads half a key, and nobody else's rights to an older
// file are left on it.
Result<std::unique_ptr<JoinKey>> JoinKey::write(const std::string& path, const AgentStart& start) {
  const std::string line = encode(JobKey{start.job, start.key_hex, start.version});
  std::string beside = path + ".XXXXXX";
  const net::Fd file(::mkostemp(beside.data(), O_CLOEXEC));  // mode 0600
  const auto fail = [&] {
    const int error = errno;
    if (file.get() >= 0) ::unlink(beside.c_str());
    return Error{fmt::format("--join-key {}: {}", path, std::strerror(error))};
  };
  if (file.get() < 0) return fail();
  if (::write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    return fail();
  if (::rename(beside.c_str(), path.c_str()) != 0) return fail();
  return std::unique_ptr<JoinKey>(new JoinKey(path));
}

std::string join_command(const std::string& key_file, const std::vector<std::string>& addresses,
                         std::uint16_t port) {
  std::vector<std::string> places;
  for (const std::string& address : addresses) places.push_back(net::host_and_port(address, port));
  return fmt::format("elasticrun-agent --key {} --join {}", key_file, fmt::join(places, " or "));
}

JoinKey::~JoinKey() { ::unlink(path_.c_str()); }

}  // namespace elasticrun::launcher
