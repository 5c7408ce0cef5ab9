// See join_key.hpp.
#include "launcher/executors/join_key.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "launcher/executors/file_thread.hpp"
#include "net/sockets.hpp"

namespace elasticrun::launcher::executors {

namespace {

constexpr Duration answer_limit = std::chrono::seconds(2);  // for a file server, at the job's end

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return std::move(text).str();
}

// Whether the file may be written: it holds a join key, or does not exist.
bool holds_key(const std::string& path) {
  struct stat entry {};
  if (::lstat(path.c_str(), &entry) != 0) return true;
  return S_ISREG(entry.st_mode) && decode_job_key(text_of(path), path).has_value();
}

}  // namespace

// Written to a temporary file beside it, which then replaces it by rename: no process reads half a
// key, and no other user keeps access rights that an older file gave.
Result<std::unique_ptr<JoinKey>> JoinKey::write(const std::string& path, const JobKey& key) {
  if (!holds_key(path))
    return Error{
        fmt::format("--join-key {}: that file is no key of a job; "
                    "name another, or remove it",
                    path)};
  std::string line = encode(key);
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
  return std::unique_ptr<JoinKey>(new JoinKey(path, std::move(line)));
}

std::string join_place(const std::string& address, std::uint16_t port) {
  return net::host_and_port(address, port);
}

std::string join_command(const std::string& key_file, const std::vector<std::string>& addresses,
                         std::uint16_t port) {
  std::vector<std::string> places;
  for (const std::string& address : addresses) places.push_back(join_place(address, port));
  return fmt::format("elasticrun-agent --key {} --join {}", key_file, fmt::join(places, " or "));
}

bool JoinKey::remove() {
  if (std::exchange(removed_, true)) return true;
  return ends_within(answer_limit, [path = path_, line = line_] {
    if (text_of(path) == line) ::unlink(path.c_str());
  });
}

}  // namespace elasticrun::launcher::executors
