// See writer.hpp.
#include "cli/run/writer.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/quiet_thread.hpp"

namespace elasticrun::cli::run {
namespace {

constexpr std::size_t part_bytes = 64u << 10;  // per write; small, so that progress shows

Time now() { return std::chrono::steady_clock::now(); }

Time after(Time since, Duration patience) {
  return patience < never - since ? since + patience : never;
}

}  // namespace

int write_all(int descriptor, std::string_view text,
              const std::function<void(std::string_view)>& written) {
  while (!text.empty()) {
    const ssize_t n = ::write(descriptor, text.data(), std::min(text.size(), part_bytes));
    if (n >= 0) {
      written(text.substr(0, static_cast<std::size_t>(n)));
      text.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      pollfd room{descriptor, POLLOUT, 0};
      ::poll(&room, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

Writer::Writer(const char* thread_name, std::size_t bytes_max, Handlers handlers)
    : handlers_(std::move(handlers)), queue_(bytes_max) {
  thread_ = start_quiet_thread(thread_name, [this] { run(); });
}

Writer::~Writer() {
  finish({});
  thread_.join();
}

WriteQueue::Gap Writer::put(const std::string& file, std::string_view text, bool closes) {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
  return queue_.put(file, text, closes, now());
}

void Writer::put_own(const std::string& file, std::string_view text) {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
  queue_.put_own(file, text, now());
}

void Writer::close(const std::string& file) {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
  queue_.close(file);
}

bool Writer::congested() const {
  const std::lock_guard lock(mutex_);
  return queue_.congested(now());
}

std::size_t Writer::refused_lines() const {
  const std::lock_guard lock(mutex_);
  return queue_.refused_lines();
}

std::size_t Writer::unwritten_lines() const {
  const std::lock_guard lock(mutex_);
  return queue_.unwritten_lines();
}

bool Writer::finish(Patience patience) {
  std::unique_lock lock(mutex_);
  closing_ = true;
  changed_.notify_all();
  const Time began = now();
  for (;;) {
    if (finished_) return true;
    const Time progress = std::max(began, queue_.progress());
    const Time end = std::min(after(began, patience.in_all), after(progress, patience.standstill));
    if (now() >= end) return false;
    changed_.wait_until(lock, end);
  }
}

// ---------------------------------------------------------------- the thread

void Writer::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) break;
    const WriteQueue::Piece piece = queue_.take();
    lock.unlock();
    write(piece);
    if (piece.closes) open_.erase(piece.file);
    lock.lock();
  }
  lock.unlock();
  open_.clear();  // closing may take a file server some time
  lock.lock();
  finished_ = true;
  changed_.notify_all();
}

void Writer::write(const WriteQueue::Piece& piece) {
  std::string_view left = piece.text;
  const auto done = [&](std::string_view part) {
    left.remove_prefix(part.size());
    const std::lock_guard lock(mutex_);
    queue_.done(part, now());
  };
  if (left.empty()) return;
  const int descriptor = descriptor_of(piece.file);
  const int error = descriptor < 0 ? errno : write_all(descriptor, left, done);
  if (error == 0) return;
  done(left);
  if (!std::exchange(trouble_told_, true)) handlers_.trouble(piece.file, error);
}

int Writer::descriptor_of(const std::string& file) {
  auto found = open_.find(file);
  if (found == open_.end()) {
    if (open_.size() >= open_files_max)
      open_.erase(
          std::ranges::min_element(open_, {}, [](const auto& one) { return one.second.used; }));
    net::Fd fd = handlers_.open(file);
    if (fd.get() < 0) return -1;
    found = open_.emplace(file, OpenFile{std::move(fd)}).first;
  }
  found->second.used = ++uses_;
  return found->second.fd.get();
}

}  // namespace elasticrun::cli::run
