// See output_pipe.hpp.
#include "launcher/agent/workers/output_pipe.hpp"

#include <unistd.h>

#include <array>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <utility>

#include "wire/limits.hpp"

namespace elasticrun::launcher::agent::workers {
namespace {

// One read makes one frame. Shared by all pipes, because it is only used within one handler.
std::array<char, 64 << 10> buffer;

}  // namespace

struct OutputPipe::State {
  State(boost::asio::io_context& io, int fd, Handlers given)
      : pipe(io, fd), lines(wire::line_bytes_max), handlers(std::move(given)) {}

  boost::asio::posix::stream_descriptor pipe;
  executors::LineSplitter lines;
  Handlers handlers;
  bool paused = false;
  bool closing = false;  // the next time there is nothing to read is the end
  bool ended = false;
};

OutputPipe::OutputPipe(boost::asio::io_context& io, net::Fd pipe, Handlers handlers)
    : state_(std::make_shared<State>(io, pipe.release(), std::move(handlers))) {
  wait(state_);
}

OutputPipe::~OutputPipe() {
  state_->ended = true;
  boost::system::error_code ignored;
  state_->pipe.close(ignored);
}

void OutputPipe::wait(const std::shared_ptr<State>& state) {
  if (state->handlers.full()) {
    state->paused = true;
    return;
  }
  // While closing, a cancelled wait also goes on to read: what is in the pipe is still wanted.
  auto ready = [state](const boost::system::error_code& error) {
    if (!state->ended && (!error || state->closing)) read(state);
  };
  if (state->closing)
    boost::asio::post(state->pipe.get_executor(), [ready] { ready({}); });
  else
    state->pipe.async_wait(boost::asio::posix::stream_descriptor::wait_read, ready);
}

void OutputPipe::read(const std::shared_ptr<State>& state) {
  const ssize_t n = ::read(state->pipe.native_handle(), buffer.data(), buffer.size());
  const bool nothing = n < 0 && (errno == EAGAIN || errno == EINTR);
  if (n == 0 || (n < 0 && !nothing) || (nothing && state->closing)) return end(state);
  if (n > 0) {
    std::string lines;
    state->lines.feed({buffer.data(), static_cast<std::size_t>(n)}, lines);
    if (!lines.empty()) state->handlers.on_lines(std::move(lines));
  }
  if (!state->ended) wait(state);
}

void OutputPipe::end(const std::shared_ptr<State>& state) {
  state->ended = true;
  boost::system::error_code ignored;
  state->pipe.close(ignored);
  std::string rest;
  state->lines.finish(rest);
  if (!rest.empty()) state->handlers.on_lines(std::move(rest));
  state->handlers.on_end();
}

void OutputPipe::resume() {
  if (std::exchange(state_->paused, false) && !state_->ended) wait(state_);
}

// From here on "nothing to read" means the end. So a pipe whose other end is held by an escaped
// process that is not ours ends as well, and a full pipe is still emptied.
void OutputPipe::expect_end() {
  if (std::exchange(state_->closing, true) || state_->ended) return;
  boost::system::error_code ignored;
  state_->pipe.cancel(ignored);
}

}  // namespace elasticrun::launcher::agent::workers
