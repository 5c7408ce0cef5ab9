// See hook_process.hpp. A run ends when its first process ends. A pidfd shows that end before the
// process is reaped: until then no other process group can have its number, so that killing the
// group is safe.
#include "launcher/executors/hook_process.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/connect_pipe.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/readable_pipe.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/writable_pipe.hpp>
#include <boost/asio/write.hpp>
#include <boost/process/v2/process.hpp>
#include <boost/process/v2/stdio.hpp>
#include <csignal>
#include <string_view>
#include <utility>

#include "base/check.hpp"
#include "base/text.hpp"
#include "launcher/executors/start_process.hpp"
#include "launcher/hosts/host_line.hpp"

namespace elasticrun::launcher::executors {
namespace {

namespace asio = boost::asio;
namespace process = boost::process::v2;
using ErrorCode = boost::system::error_code;

constexpr std::size_t output_max = 1u << 20;
constexpr std::size_t stderr_text_max = 4096;
// How long output is still read after the first process has ended. A daemon that the program has
// started in a session of its own may hold the pipes open for ever.
constexpr auto last_bytes_time = std::chrono::milliseconds(200);

// $1: the command; $2: the number of bytes of input that come first through the channel; $3: that
// input. It is passed on as a here-document, of which the program may read as little as it likes.
// The script waits for the process that reads the channel, so that no zombie is left to a parent
// that does not reap.
constexpr const char* wrapper = R"sh(exec 3<&0 </dev/null
[ "$2" -eq 0 ] || set -- "$1" "$2" "$(head -c "$2" <&3)"
(read -r _ <&3; kill -KILL 0) >/dev/null 2>&1 &
reader=$!
exec 3<&-
if [ "$2" -eq 0 ]; then
  sh -c "$1"
else
  sh -c "$1" <<END
$3
END
fi
code=$?
exec 2>/dev/null
kill -KILL $reader
wait $reader
exit $code
)sh";

// What the program said last, as the end of an error.
std::string last_words(std::string_view text) {
  const std::string_view line = last_line(text);
  return line.empty() ? "" : fmt::format(": {}", hosts::shown(line));
}

}  // namespace

struct HookProcess::Run {
  explicit Run(asio::io_context& io)
      : channel(io), output(io), errors(io), process(io), end(io), timer(io) {}

  void kill() {
    if (!ended) ::kill(-process.id(), SIGKILL);
  }
  void give_up(std::string why) {
    if (trouble.empty()) trouble = std::move(why);
    kill();
  }

  std::function<void(HookAnswer)> done;          // empty: the answer is not wanted any more
  asio::local::stream_protocol::socket channel;  // when it closes, the group knows that we are gone
  std::string input;
  asio::readable_pipe output;
  asio::readable_pipe errors;
  process::process process;
  asio::posix::stream_descriptor end;  // readable when the first process has ended
  asio::steady_timer timer;
  std::array<char, 16384> output_buffer;
  std::array<char, 4096> errors_buffer;
  std::string text, stderr_text, trouble;
  bool ended = false, output_ended = false, errors_ended = false;
};

HookProcess::HookProcess(asio::io_context& io, Hook hook) : io_(io), hook_(std::move(hook)) {}

HookProcess::~HookProcess() {
  if (!run_) return;
  run_->done = nullptr;
  ErrorCode ignored;
  run_->kill();
  if (!run_->ended) run_->process.wait(ignored);
  run_->channel.close(ignored);
  run_->output.close(ignored);
  run_->errors.close(ignored);
  run_->end.close(ignored);
  run_->timer.cancel();
}

void HookProcess::run(std::string input, std::function<void(HookAnswer)> done) {
  ER_CHECK(!run_);
  auto run = std::make_shared<Run>(io_);
  run->done = std::move(done);
  run->input = std::move(input);
  ErrorCode error;
  asio::local::stream_protocol::socket child_end(io_);
  asio::writable_pipe output(io_), errors(io_);
  asio::local::connect_pair(run->channel, child_end, error);
  if (!error) asio::connect_pipe(run->output, output, error);
  if (!error) asio::connect_pipe(run->errors, errors, error);
  if (!error) {
    run->process = start_process(
        io_, error, "/bin/sh",
        {"-c", wrapper, "sh", hook_.command, fmt::to_string(run->input.size())},
        process::process_stdio{child_end.native_handle(), output, errors}, OwnSession{});
  }
  run_ = run;
  // glibc 2.36 declares pidfd_open for C only.
  const int end = error ? -1 : static_cast<int>(::syscall(SYS_pidfd_open, run->process.id(), 0));
  if (end < 0) {
    run->trouble = "cannot be started: " + (error ? error.message() : std::string("no descriptor"));
    run->ended = run->output_ended = run->errors_ended = true;
    return asio::post(io_, [this, run] { finish_if_over(run); });
  }
  run->end.assign(end);
  give_input(run);
  read_output(run);
  read_errors(run);
  watch(run);
}

int HookProcess::pid() const { return run_ && !run_->ended ? run_->process.id() : 0; }

// The channel is a socket because writing to it, unlike to a pipe, raises no signal when the reader
// is gone.
void HookProcess::give_input(const std::shared_ptr<Run>& run) {
  asio::async_write(run->channel, asio::buffer(run->input),
                    [run](const ErrorCode&, std::size_t) {});
}

void HookProcess::read_output(const std::shared_ptr<Run>& run) {
  run->output.async_read_some(asio::buffer(run->output_buffer),
                              [this, run](const ErrorCode& error, std::size_t bytes) {
                                if (!run->done) return;
                                run->text.append(run->output_buffer.data(), bytes);
                                if (run->text.size() > output_max) {
                                  run->text.clear();
                                  run->give_up("printed more than 1 MiB");
                                }
                                if (!error) return read_output(run);
                                run->output_ended = true;
                                finish_if_over(run);
                              });
}

void HookProcess::read_errors(const std::shared_ptr<Run>& run) {
  run->errors.async_read_some(
      asio::buffer(run->errors_buffer), [this, run](const ErrorCode& error, std::size_t bytes) {
        if (!run->done) return;
        run->stderr_text.append(run->errors_buffer.data(),
                                std::min(bytes, stderr_text_max - run->stderr_text.size()));
        if (!error) return read_errors(run);
        run->errors_ended = true;
        finish_if_over(run);
      });
}

void HookProcess::watch(const std::shared_ptr<Run>& run) {
  run->timer.expires_after(hook_.timeout);
  run->timer.async_wait([this, run](const ErrorCode& error) {
    if (error) return;
    run->give_up(fmt::format("took longer than {}{}", to_text(hook_.timeout),
                             hook_.flag.empty() ? "" : fmt::format(" ({})", hook_.flag)));
  });
  run->end.async_wait(asio::posix::stream_descriptor::wait_read, [this, run](const ErrorCode& ec) {
    if (ec || !run->done) return;
    run->kill();
    ErrorCode ignored;
    run->process.wait(ignored);
    run->ended = true;
    run->timer.expires_after(last_bytes_time);
    run->timer.async_wait([this, run](const ErrorCode& error) {
      if (error) return;
      run->output_ended = run->errors_ended = true;
      finish_if_over(run);
    });
    finish_if_over(run);
  });
}

void HookProcess::finish_if_over(const std::shared_ptr<Run>& run) {
  if (!run->done || !run->ended || !run->output_ended || !run->errors_ended) return;
  const auto done = std::exchange(run->done, nullptr);
  ErrorCode ignored;
  run->channel.close(ignored);
  run->output.close(ignored);
  run->errors.close(ignored);
  run->timer.cancel();
  run_ = nullptr;
  std::string trouble = std::move(run->trouble);
  int code = 0;
  if (trouble.empty()) {
    const int status = run->process.native_exit_code();
    if (WIFEXITED(status)) code = WEXITSTATUS(status);
    if (WIFSIGNALED(status))
      trouble = fmt::format("was killed by signal {}", WTERMSIG(status));
    else if (code != 0)
      trouble = fmt::format("ended with exit code {}", code);
  }
  if (trouble.empty()) return done({ok(std::move(run->text)), std::move(run->stderr_text)});
  Error error{trouble + last_words(run->stderr_text)};
  done({std::move(error), std::move(run->stderr_text), code});
}

HookAnswer run_hook(Hook hook, std::string input) {
  asio::io_context io(1);
  HookProcess program(io, std::move(hook));
  HookAnswer result{Error{"nothing was heard of it"}, {}};
  program.run(std::move(input), [&](HookAnswer heard) { result = std::move(heard); });
  io.run();
  return result;
}

}  // namespace elasticrun::launcher::executors
