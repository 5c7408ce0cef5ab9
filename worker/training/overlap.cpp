// See overlap.hpp.
#include "worker/training/overlap.hpp"

#include <utility>

#include "base/quiet_thread.hpp"

namespace elasticrun::worker::training {

Overlap::Overlap(std::span<const Bucket> buckets, std::size_t gradients,
                 std::function<void(std::size_t)> reduce)
    : reduce_(std::move(reduce)), marks_(buckets, gradients) {}

Overlap::~Overlap() {
  cancel();
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Overlap::begin(const void* step) {
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) thread_ = start_quiet_thread("er-buckets", [this] { run(); });
  marks_.begin();
  step_ = step;
}

bool Overlap::ready(const void* step, std::size_t gradient) {
  const std::lock_guard lock(mutex_);
  if (gradient >= marks_.gradients()) return false;
  if (step != step_) return true;
  marks_.mark(gradient);
  changed_.notify_all();
  return true;
}

void Overlap::finish() {
  std::unique_lock lock(mutex_);
  if (!step_) return;
  marks_.mark_all();
  changed_.notify_all();
  changed_.wait(lock, [this] { return !reducing_ && (error_ || marks_.all_started()); });
  step_ = nullptr;
  if (const std::exception_ptr error = std::exchange(error_, nullptr)) {
    lock.unlock();
    std::rethrow_exception(error);
  }
}

void Overlap::cancel() {
  std::unique_lock lock(mutex_);
  step_ = nullptr;
  changed_.wait(lock, [this] { return !reducing_; });
  error_ = nullptr;
}

bool Overlap::active() const {
  const std::lock_guard lock(mutex_);
  return step_ != nullptr;
}

void Overlap::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    std::optional<std::size_t> bucket;
    changed_.wait(lock, [&] {
      if (!stop_ && step_ && !error_) bucket = marks_.start();
      return stop_ || bucket;
    });
    if (stop_) return;
    reducing_ = true;
    lock.unlock();
    std::exception_ptr error;
    try {
      reduce_(*bucket);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    reducing_ = false;
    error_ = error;
    changed_.notify_all();
  }
}

}  // namespace elasticrun::worker::training
