// See overlap.hpp.
#include "worker/training/overlap.hpp"

#include <algorithm>
#include <utility>

#include "base/quiet_thread.hpp"

namespace elasticrun::worker::training {

Overlap::Overlap(std::function<void(std::size_t)> reduce, std::function<void(std::size_t)> on_ready)
    : reduce_(std::move(reduce)), on_ready_(std::move(on_ready)) {}

Overlap::~Overlap() {
  cancel();
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Overlap::cut(std::span<const Bucket> buckets, std::size_t gradients) {
  const std::lock_guard lock(mutex_);
  marks_ = ReadyMarks(buckets, gradients);
  unset_.assign(gradients, 0);
}

void Overlap::begin(const void* step) {
  const std::lock_guard lock(mutex_);
  marks_.begin();
  if (any_unset_.exchange(false)) std::ranges::fill(unset_, 0);
  step_ = step;
}

void Overlap::start() {
  const std::lock_guard lock(mutex_);
  if (marks_.all_started()) return;  // there is none
  if (!thread_.joinable()) thread_ = start_quiet_thread("er-buckets", [this] { run(); });
  started_ = true;
  if (marks_.may_start()) changed_.notify_all();
}

bool Overlap::ready(const void* step, std::size_t gradient, bool is_set) {
  const std::lock_guard lock(mutex_);
  if (gradient >= marks_.gradients()) return false;
  if (step != step_ || !marks_.mark(gradient)) return true;
  if (!is_set) {
    unset_[gradient] = 1;
    any_unset_ = true;
  }
  on_ready_(gradient);
  // Waking the thread takes longer than all else here.
  if (started_ && !reducing_ && marks_.may_start()) changed_.notify_all();
  return true;
}

bool Overlap::is_set(std::size_t gradient) const {
  if (!any_unset_) return true;
  const std::lock_guard lock(mutex_);
  return unset_[gradient] == 0;
}

void Overlap::finish() {
  std::unique_lock lock(mutex_);
  if (started_) {
    for (std::size_t gradient = 0; gradient < marks_.gradients(); ++gradient)
      if (marks_.mark(gradient)) on_ready_(gradient);
    changed_.notify_all();
    changed_.wait(lock, [this] { return !reducing_ && (error_ || marks_.all_started()); });
  }
  end();
  if (const std::exception_ptr error = std::exchange(error_, nullptr)) {
    lock.unlock();
    std::rethrow_exception(error);
  }
}

void Overlap::cancel() {
  std::unique_lock lock(mutex_);
  end();
  changed_.wait(lock, [this] { return !reducing_; });
  error_ = nullptr;
}

void Overlap::end() {
  step_ = nullptr;
  started_ = false;
}

bool Overlap::active() const {
  const std::lock_guard lock(mutex_);
  return started_;
}

void Overlap::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    std::optional<std::size_t> bucket;
    changed_.wait(lock, [&] {
      if (!stop_ && started_ && !error_) bucket = marks_.start();
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
