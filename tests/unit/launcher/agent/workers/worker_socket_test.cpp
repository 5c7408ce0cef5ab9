// The socket of an agent is maintained even while nothing happens.
#include "launcher/agent/workers/worker_socket.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <boost/asio/io_context.hpp>
#include <filesystem>

#include "launcher/agent/workers/private_directory.hpp"

namespace elasticrun::launcher::agent::workers {
namespace {

namespace fs = std::filesystem;

struct stat status_of(const std::string& path) {
  struct stat status {};
  ::lstat(path.c_str(), &status);
  return status;
}

TEST_CASE("the socket's times stay recent, and it is made again when it was removed") {
  const PrivateDirectory directory = make_private_directory().value();
  boost::asio::io_context io;
  const auto until = [&](const std::function<bool()>& condition) {
    const Time deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition() && std::chrono::steady_clock::now() < deadline) io.run_one_until(deadline);
    return condition();
  };
  WorkerSocket socket(io, directory.path, {}, {.log = [](const std::string&) {}},
                      std::chrono::milliseconds(1));
  CHECK(!fs::exists(socket.path()));
  REQUIRE(socket.ensure().has_value());
  const ino_t first = status_of(socket.path()).st_ino;
  REQUIRE(socket.ensure().has_value());
  CHECK(status_of(socket.path()).st_ino == first);

  const timespec long_ago[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
  for (const std::string& path : {directory.path, socket.path()})
    REQUIRE(::utimensat(AT_FDCWD, path.c_str(), long_ago, AT_SYMLINK_NOFOLLOW) == 0);
  for (const std::string& path : {directory.path, socket.path()})
    CHECK(until([&] {
      return status_of(path).st_mtime > 1'000'000'000 && status_of(path).st_atime > 1'000'000'000;
    }));

  fs::remove_all(directory.path);
  CHECK(until([&] { return fs::exists(socket.path()); }));
  remove_directory(directory.path);
}

}  // namespace
}  // namespace elasticrun::launcher::agent::workers
