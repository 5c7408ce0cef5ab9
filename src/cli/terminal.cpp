#include "cli/terminal.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>

#include "base/error.hpp"

namespace elasticrun::cli {
namespace {

constexpr std::size_t queue_bytes_high = 1u << 20;  // workers wait from here on
constexpr std::size_t queue_bytes_max = 32u << 20;  // room for what is under way from many hosts
constexpr std::size_t piece_bytes = 64u << 10;      // of one write, to see that a reader reads
constexpr auto standstill = std::chrono::seconds(3);
constexpr auto last_write_limit = std::chrono::seconds(1);

// The error, or 0. Whoever shares the terminal or pipe with us may have made it non-blocking: the
// flag belongs to the open file, not to the process.
int write_all(int descriptor, std::string_view text,
              const std::function<void(std::size_t)>& progress) {
  while (!text.empty()) {
    const ssize_t n = ::write(descriptor, text.data(), std::min(text.size(), piece_bytes));
    if (n >= 0) {
      text.remove_prefix(static_cast<std::size_t>(n));
      progress(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      pollfd room{descriptor, POLLOUT, 0};
      ::poll(&room, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

// A reader that went away (head) has seen enough, and a descriptor that was closed at the start is
// not wanted; anything else is a loss that nobody has asked for.
bool is_a_loss(int error) { return error != 0 && error != EPIPE && error != EBADF; }

}  // namespace

Result<std::unique_ptr<Terminal>> Terminal::open(const job::JobSpec& spec) {
  std::unique_ptr<Terminal> terminal(new Terminal(spec));
  if (!spec.log_dir.empty()) {
    std::error_code ec;
    std::filesystem::create_directories(spec.log_dir, ec);
    if (ec) return Error{fmt::format("--log-dir {}: {}", spec.log_dir, ec.message())};
  }
  if (!spec.events_file.empty()) {
    terminal->events_.reset(std::fopen(spec.events_file.c_str(), "ae"));
    if (!terminal->events_)
      return Error{fmt::format("--events {}: {}", spec.events_file, std::strerror(errno))};
  }
  return terminal;
}

Terminal::Terminal(const job::JobSpec& spec)
    : label_(spec.label), quiet_(spec.quiet), explain_(spec.explain), log_dir_(spec.log_dir) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // signals belong to the main thread
  writer_ = std::thread([this] { write_out(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Terminal::~Terminal() { finish(exit_code::internal, false); }

void Terminal::finish(int exit_code, bool patient) {
  if (!writer_.joinable()) return;
  std::unique_lock lock(mutex_);
  closing_ = true;
  changed_.notify_all();
  const auto done = [this] { return written_; };
  if (patient)
    changed_.wait(lock, done);
  else if (!changed_.wait_for(lock, last_write_limit, done))
    ::_exit(exit_code);  // nobody reads: the thread cannot be ended, the process can
  lock.unlock();
  writer_.join();
}

void Terminal::write_out() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) break;
    Chunk chunk = std::move(queue_.front());
    queue_.pop_front();
    std::size_t left = chunk.text.size();
    const std::size_t lost = std::exchange(dropped_, 0);
    lock.unlock();
    const int error = write_all(chunk.descriptor, chunk.text, [&](std::size_t bytes) {
      const std::lock_guard taken(mutex_);
      left -= bytes;
      queued_bytes_ -= bytes;
      progress_ = std::chrono::steady_clock::now();
    });
    if (is_a_loss(error) && !std::exchange(write_trouble_told_, true))
      tell(fmt::format("output cannot be written: {}; the job goes on without it",
                       std::strerror(error)));
    if (lost > 0)
      tell(fmt::format("{} bytes of output were not shown, their reader was too slow", lost));
    lock.lock();
    queued_bytes_ -= left;
  }
  written_ = true;
  changed_.notify_all();
}

void Terminal::tell(std::string_view text) {
  write_all(STDERR_FILENO, fmt::format("elasticrun: {}\n", text), [](std::size_t) {});
}

void Terminal::put(int descriptor, std::string text) {
  const std::lock_guard lock(mutex_);
  if (queued_bytes_ + text.size() > queue_bytes_max) {
    dropped_ += text.size();
    return;
  }
  if (queued_bytes_ == 0) progress_ = std::chrono::steady_clock::now();
  queued_bytes_ += text.size();
  if (!queue_.empty() && queue_.back().descriptor == descriptor)
    queue_.back().text += text;
  else
    queue_.push_back({descriptor, std::move(text)});
  changed_.notify_all();
}

bool Terminal::crowded() {
  const std::lock_guard lock(mutex_);
  return queued_bytes_ > queue_bytes_high &&
         std::chrono::steady_clock::now() - progress_ < standstill;
}

void Terminal::say(job::Tone tone, std::string_view text) {
  if (tone != job::Tone::error && quiet_) return;
  if (tone == job::Tone::detail && !explain_) return;
  put(STDERR_FILENO, fmt::format("elasticrun: {}\n", text));
}

void Terminal::output(const job::Speaker& speaker, std::int32_t stream, std::string_view text) {
  if (!log_dir_.empty()) {
    const std::string name =
        fmt::format("{}/{}.{}.worker{}.{}", log_dir_, speaker.host, speaker.slot,
                    speaker.worker.value, stream == 1 ? "out" : "err");
    auto& file = logs_[name];
    if (!file) file.reset(std::fopen(name.c_str(), "ae"));
    to_file(file.get(), text, name);
  }
  const int descriptor = stream == 1 ? STDOUT_FILENO : STDERR_FILENO;
  if (!label_) return put(descriptor, std::string(text));
  const std::string label = speaker.rank < 0 ? fmt::format("{}:-: ", speaker.host)
                                             : fmt::format("{}:{}: ", speaker.host, speaker.rank);
  std::string labelled;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size() - 1) + 1;
    labelled += label;
    labelled += text.substr(0, end);
    text.remove_prefix(end);
  }
  put(descriptor, std::move(labelled));
}

void Terminal::event(std::string_view json) {
  if (events_) to_file(events_.get(), fmt::format("{}\n", json), "the event file");
}

// A full disk costs the record, never the training: it is said once, and each later line is tried
// anew.
void Terminal::to_file(std::FILE* file, std::string_view text, const std::string& name) {
  const bool ok = file && std::fwrite(text.data(), 1, text.size(), file) == text.size() &&
                  std::fflush(file) == 0;
  if (ok || std::exchange(file_trouble_told_, true)) return;
  say(job::Tone::error,
      fmt::format("{}: {}; the job goes on without it", name, std::strerror(errno)));
}

}  // namespace elasticrun::cli
