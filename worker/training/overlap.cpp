// See overlap.hpp.
#include "worker/training/overlap.hpp"

#include <algorithm>
#include <utility>

namespace elasticrun::worker::training {

Overlap::Overlap(std::function<void(std::size_t)> reduce, std::function<void(std::size_t)> on_ready)
    : reduce_(std::move(reduce)), on_ready_(std::move(on_ready)) {}

Overlap::~Overlap() { cancel(); }

void Overlap::cut(std::span<const core::Bucket> buckets, std::size_t gradients) {
  const std::lock_guard lock(mutex_);
  marks_ = core::ReadyMarks(buckets, gradients);
  unset_.assign(gradients, 0);
}

void Overlap::begin(const void* step) {
  const std::lock_guard lock(mutex_);
  marks_.begin(step);
  if (any_unset_.exchange(false)) std::ranges::fill(unset_, 0);
}

void Overlap::start() {
  const std::lock_guard lock(mutex_);
  started_ = true;
  push_startable();
}

void Overlap::push_startable() {
  while (const auto bucket = marks_.start()) queue_.push([this, bucket] { reduce_(*bucket); });
}

bool Overlap::ready(const void* step, std::size_t gradient, bool is_set) {
  const std::lock_guard lock(mutex_);
  if (gradient >= marks_.gradients()) return false;
  if (!marks_.mark(step, gradient)) return true;
  if (!is_set) {
    unset_[gradient] = 1;
    any_unset_ = true;
  }
  if (on_ready_) on_ready_(gradient);
  if (started_) push_startable();
  return true;
}

bool Overlap::is_set(std::size_t gradient) const {
  if (all_set()) return true;
  const std::lock_guard lock(mutex_);
  return unset_[gradient] == 0;
}

void Overlap::finish() {
  {
    const std::lock_guard lock(mutex_);
    if (started_) {
      for (std::size_t gradient = 0; on_ready_ && gradient < marks_.gradients(); ++gradient)
        if (!marks_.is_marked(gradient)) on_ready_(gradient);
      marks_.mark_all();
      push_startable();
    }
    end();
  }
  queue_.wait();
}

void Overlap::cancel() {
  {
    const std::lock_guard lock(mutex_);
    end();
  }
  queue_.cancel();
}

void Overlap::end() {
  marks_.end();
  started_ = false;
}

bool Overlap::active() const {
  const std::lock_guard lock(mutex_);
  return started_;
}

}  // namespace elasticrun::worker::training
