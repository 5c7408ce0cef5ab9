// See child_process.hpp.
#include "launcher/ssh/child_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/readable_pipe.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/process/v2/process.hpp>
#include <boost/process/v2/stdio.hpp>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "launcher/executors/start_process.hpp"

namespace elasticrun::launcher::ssh {
namespace {

namespace asio = boost::asio;
namespace process = boost::process::v2;
using ErrorCode = boost::system::error_code;

constexpr std::size_t output_max = 256u << 10;
constexpr std::size_t last_words_max = 4096;
constexpr auto last_words_time = std::chrono::milliseconds(500);

asio::awaitable<void> read_all(asio::readable_pipe& pipe, std::string& text) {
  std::array<char, 4096> buffer;
  for (ErrorCode error; !error;) {
    const std::size_t bytes = co_await pipe.async_read_some(
        asio::buffer(buffer), asio::redirect_error(asio::use_awaitable, error));
    if (text.size() < output_max) text.append(buffer.data(), bytes);
  }
}

}  // namespace

Result<std::string> find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path ? path : "/usr/bin:/bin";
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
    std::string candidate = fmt::format("{}/{}", folder, name);
    if (!folder.empty() && ::access(candidate.c_str(), X_OK) == 0) return ok(std::move(candidate));
  }
  return Error{fmt::format("{} is not in PATH", name)};
}

asio::awaitable<Result<CommandResult>> run_command(asio::io_context& io, const std::string& path,
                                                   const std::vector<std::string>& args) {
  asio::readable_pipe out(io), err(io);
  ErrorCode error;
  process::process child = executors::start_process(
      io, error, path, args, process::process_stdio{nullptr, out, err}, executors::OwnSession{});
  if (error) co_return Error{fmt::format("{}: {}", path, error.message())};
  CommandResult result;
  co_await read_all(out, result.out);
  co_await read_all(err, result.err);
  co_await child.async_wait(asio::redirect_error(asio::use_awaitable, error));
  const int status = child.native_exit_code();
  result.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  co_return result;
}

struct Proxy::State {
  explicit State(asio::io_context& io) : errors(io), ended(io), process(io) {}

  net::Fd socket;
  asio::readable_pipe errors;
  std::array<char, 1024> buffer;
  std::string words;
  bool over = false;
  asio::steady_timer ended;
  process::process process;
};

Proxy::Proxy(std::shared_ptr<State> state) : state_(std::move(state)) {}

Proxy::~Proxy() {
  ErrorCode ignored;
  state_->process.terminate(ignored);
  state_->errors.close(ignored);
}

namespace {

// Uses callbacks and not a coroutine: it goes on for as long as the connection does, whether or not
// a coroutine waits for the output.
template <class State>
void read_words(const std::shared_ptr<State>& state) {
  state->errors.async_read_some(asio::buffer(state->buffer),
                                [state](const ErrorCode& error, std::size_t bytes) {
                                  state->words.append(state->buffer.data(), bytes);
                                  if (state->words.size() > last_words_max)
                                    state->words.erase(0, state->words.size() - last_words_max);
                                  if (!error) return read_words(state);
                                  state->over = true;
                                  state->ended.cancel();
                                });
}

}  // namespace

Result<std::unique_ptr<Proxy>> Proxy::start(asio::io_context& io, const std::string& command) {
  auto state = std::make_shared<State>(io);
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets) != 0)
    return Error{"no socket for the proxy: " + net::error_text(errno)};
  state->socket = net::Fd(sockets[0]);
  const net::Fd theirs(sockets[1]);
  // The proxy's end blocks in read and write, as programs expect.
  ::fcntl(theirs.get(), F_SETFL, 0);
  ErrorCode error;
  state->process = executors::start_process(
      io, error, "/bin/sh", {"-c", "exec " + command},
      process::process_stdio{theirs.get(), theirs.get(), state->errors}, executors::OwnSession{});
  if (error) return Error{fmt::format("the proxy cannot be started: {}", error.message())};
  read_words(state);
  return std::unique_ptr<Proxy>(new Proxy(std::move(state)));
}

net::Fd Proxy::take_socket() { return std::move(state_->socket); }

asio::awaitable<std::string> Proxy::last_words() {
  const auto state = state_;
  state->ended.expires_after(last_words_time);
  ErrorCode ignored;
  if (!state->over)
    co_await state->ended.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  co_return state->words;
}

}  // namespace elasticrun::launcher::ssh
