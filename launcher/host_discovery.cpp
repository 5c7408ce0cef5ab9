// See host_discovery.hpp. The end of the first process ends the run; it is seen before it is
// reaped, because until then its process group's number is certainly its own and may be killed.
#include "launcher/host_discovery.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/connect_pipe.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/readable_pipe.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/writable_pipe.hpp>
#include <boost/process/v2/process.hpp>
#include <boost/process/v2/stdio.hpp>
#include <csignal>
#include <string_view>
#include <utility>

#include "base/check.hpp"
#include "launcher/host_line.hpp"
#include "launcher/own_session.hpp"

namespace elasticrun::launcher {
namespace {

namespace asio = boost::asio;
namespace process = boost::process::v2;
using ErrorCode = boost::system::error_code;

constexpr std::size_t output_max = 1u << 20;
constexpr std::size_t words_max = 4096;
// A daemon that the program has started in a session of its own may hold the pipes for good.
constexpr auto last_bytes_time = std::chrono::milliseconds(200);

// The leash is waited for, so that no zombie is left to a parent that does not reap.
constexpr const char* leashed = R"(exec 3<&0 </dev/null
(read -r _ <&3; kill -KILL 0) >/dev/null 2>&1 &
leash=$!
exec 3<&-
sh -c "$1"
code=$?
exec 2>/dev/null
kill -KILL $leash
wait $leash
exit $code
)";

std::string last_line(std::string_view words) {
  const auto end = words.find_last_not_of("\r\n \t");
  if (end == words.npos) return {};
  words = words.substr(0, end + 1);
  const auto begin = words.rfind('\n');
  return fmt::format(": {}", shown(begin == words.npos ? words : words.substr(begin + 1)));
}

}  // namespace

struct HostDiscovery::Run {
  explicit Run(asio::io_context& io)
      : leash(io), output(io), errors(io), process(io), end(io), timer(io) {}

  void kill() {
    if (!ended) ::kill(-process.id(), SIGKILL);
  }
  void give_up(std::string why) {
    if (trouble.empty()) trouble = std::move(why);
    kill();
  }

  std::function<void(Discovered)> done;  // empty: nobody waits any more
  asio::writable_pipe leash;             // its end says that we are gone
  asio::readable_pipe output;
  asio::readable_pipe errors;
  process::process process;
  asio::posix::stream_descriptor end;  // readable when the first process has ended
  asio::steady_timer timer;
  std::array<char, 16384> output_buffer;
  std::array<char, 4096> errors_buffer;
  std::string text, words, trouble;
  bool ended = false, output_ended = false, errors_ended = false;
};

HostDiscovery::HostDiscovery(asio::io_context& io, std::string command, Duration timeout)
    : io_(io), command_(std::move(command)), timeout_(timeout) {}

HostDiscovery::~HostDiscovery() {
  if (!run_) return;
  run_->done = nullptr;
  ErrorCode ignored;
  run_->kill();
  if (!run_->ended) run_->process.wait(ignored);
  run_->output.close(ignored);
  run_->errors.close(ignored);
  run_->end.close(ignored);
  run_->timer.cancel();
}

void HostDiscovery::run(std::function<void(Discovered)> done) {
  ER_CHECK(!run_);
  auto run = std::make_shared<Run>(io_);
  run->done = std::move(done);
  ErrorCode error;
  asio::readable_pipe input(io_);
  asio::writable_pipe output(io_), errors(io_);
  asio::connect_pipe(input, run->leash, error);
  if (!error) asio::connect_pipe(run->output, output, error);
  if (!error) asio::connect_pipe(run->errors, errors, error);
  if (!error) {
    process::default_process_launcher launcher;
    run->process = launcher(io_.get_executor(), error, "/bin/sh",
                            std::vector<std::string>{"-c", leashed, "sh", command_},
                            process::process_stdio{input, output, errors}, OwnSession{});
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
  read_output(run);
  read_words(run);
  watch(run);
}

void HostDiscovery::read_output(const std::shared_ptr<Run>& run) {
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

void HostDiscovery::read_words(const std::shared_ptr<Run>& run) {
  run->errors.async_read_some(asio::buffer(run->errors_buffer), [this, run](const ErrorCode& error,
                                                                            std::size_t bytes) {
    if (!run->done) return;
    run->words.append(run->errors_buffer.data(), std::min(bytes, words_max - run->words.size()));
    if (!error) return read_words(run);
    run->errors_ended = true;
    finish_if_over(run);
  });
}

void HostDiscovery::watch(const std::shared_ptr<Run>& run) {
  run->timer.expires_after(timeout_);
  run->timer.async_wait([this, run](const ErrorCode& error) {
    if (error) return;
    run->give_up(fmt::format("took longer than {} (--discovery-timeout)", to_text(timeout_)));
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

void HostDiscovery::finish_if_over(const std::shared_ptr<Run>& run) {
  if (!run->done || !run->ended || !run->output_ended || !run->errors_ended) return;
  const auto done = std::exchange(run->done, nullptr);
  ErrorCode ignored;
  run->output.close(ignored);
  run->errors.close(ignored);
  run->timer.cancel();
  run_ = nullptr;
  std::string trouble = std::move(run->trouble);
  if (trouble.empty()) {
    const int status = run->process.native_exit_code();
    if (WIFSIGNALED(status))
      trouble = fmt::format("was killed by signal {}", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
      trouble = fmt::format("ended with exit code {}", WEXITSTATUS(status));
  }
  if (trouble.empty())
    return done({{boost::system::in_place_value, std::move(run->text)}, std::move(run->words)});
  Error error{fmt::format("'{}' {}{}", shown(command_), trouble, last_line(run->words))};
  done({std::move(error), std::move(run->words)});
}

Discovered discover_hosts(const std::string& command, Duration timeout) {
  asio::io_context io(1);
  HostDiscovery discovery(io, command, timeout);
  Discovered result{Error{"nothing was heard of it"}, {}};
  discovery.run([&](Discovered found) { result = std::move(found); });
  io.run();
  return result;
}

}  // namespace elasticrun::launcher
