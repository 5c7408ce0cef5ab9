// A child process runs its program or nothing: whatever state our descriptors are in, it never
// continues as a second copy of this process.
#include <doctest/doctest.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <optional>
#include <string>
#include <vector>

#include "launcher/ssh/child_process.hpp"

namespace elasticrun::launcher::ssh {
namespace {

namespace asio = boost::asio;

TEST_CASE("a program runs even if one of our descriptors was closed behind our back") {
  asio::io_context io;
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  asio::posix::stream_descriptor watched(io, pipe[0]);
  ::close(pipe[0]);  // as libssh does with the socket of a refused connection
  std::optional<CommandResult> result;
  const pid_t self = ::getpid();
  const std::vector<std::string> words{"well"};
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        Result<CommandResult> ran = co_await run_command(io, "/bin/echo", words);
        if (ran) result = *ran;
      },
      asio::detached);
  try {
    io.run();
  } catch (...) {
    if (::getpid() == self) throw;
  }
  if (::getpid() != self) ::_exit(99);  // the child; the parent sees this exit code
  watched.release();
  ::close(pipe[1]);
  REQUIRE(result);
  CHECK(result->exit_code == 0);
  CHECK(result->out == "well\n");
}

}  // namespace
}  // namespace elasticrun::launcher::ssh
