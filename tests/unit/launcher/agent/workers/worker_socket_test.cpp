// The socket of an agent is maintained even while nothing happens.
#include "launcher/agent/workers/worker_socket.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <map>
#include <memory>

#include "launcher/agent/workers/private_directory.hpp"
#include "net/dial.hpp"
#include "wire/limits.hpp"

namespace elasticrun::launcher::agent::workers {
namespace {

namespace fs = std::filesystem;

struct stat status_of(const std::string& path) {
  struct stat status {};
  ::lstat(path.c_str(), &status);
  return status;
}

struct SocketPlace {
  const PrivateDirectory directory = make_private_directory().value();
  boost::asio::io_context io;

  ~SocketPlace() { remove_directory(directory.path); }
  bool until(const std::function<bool()>& condition) {
    const Time deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition() && std::chrono::steady_clock::now() < deadline) io.run_one_until(deadline);
    return condition();
  }
};

TEST_CASE_FIXTURE(SocketPlace,
                  "the socket's times stay recent, and it is made again when it was removed") {
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
}

TEST_CASE_FIXTURE(SocketPlace,
                  "a worker that sends more than its share waits, and another does not") {
  constexpr std::size_t one_message = 4u << 20;
  std::map<WorkerId, std::size_t> untaken, heard;
  WorkerSocket socket(io, directory.path, {.job = "j", .version = "v"},
                      {.shim_of = [](WorkerId) { return ::getppid(); },
                       .on_message =
                           [&](WorkerId worker, std::string_view message) {
                             untaken[worker] += message.size();
                             ++heard[worker];
                           },
                       .log = [](const std::string& line) { FAIL(line); },
                       .untaken = [&](WorkerId worker) { return untaken[worker]; }});
  REQUIRE(socket.ensure().has_value());
  std::map<WorkerId, std::unique_ptr<net::Session>> workers;
  for (const WorkerId worker : {WorkerId(1), WorkerId(2)}) {
    const auto dialling =
        net::dial_unix(io, socket.path(),
                       {.protocol = wire::protocol,
                        .version = "v",
                        .role = "worker",
                        .job = "j",
                        .worker = worker},
                       std::chrono::seconds(10), [&, worker](Result<net::Greeted> greeted) {
                         REQUIRE(greeted.has_value());
                         workers[worker] = std::move(greeted->session);
                       });
    REQUIRE(until([&] { return workers.contains(worker); }));
    workers[worker]->start({.on_frame = [](WorkerId, std::string_view) {},
                            .on_close = [](const std::string& why) { FAIL(why); }});
  }
  const std::size_t all = wire::control_queue_max / one_message - 1;
  const std::size_t share = wire::worker_messages_high / 2;  // of two workers
  for (std::size_t i = 0; i < all; ++i)
    workers[WorkerId(1)]->send(WorkerId(1), std::string(one_message, 'x'));
  REQUIRE(until([&] { return untaken[WorkerId(1)] > share; }));
  workers[WorkerId(2)]->send(WorkerId(2), "hello");
  REQUIRE(until([&] { return heard[WorkerId(2)] == 1; }));
  io.poll();
  CHECK(heard[WorkerId(1)] == share / one_message + 1);
  socket.read_on();  // nothing has been taken
  io.poll();
  CHECK(heard[WorkerId(1)] == share / one_message + 1);
  while (heard[WorkerId(1)] < all) {
    untaken[WorkerId(1)] = 0;
    const std::size_t before = heard[WorkerId(1)];
    socket.read_on();
    REQUIRE(until([&] { return heard[WorkerId(1)] > before; }));
  }
}

}  // namespace
}  // namespace elasticrun::launcher::agent::workers
