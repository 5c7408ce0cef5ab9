// See overlap.hpp.
#include "worker/training/overlap.hpp"

#include <algorithm>
#include <utility>

namespace elasticrun::worker::training {

Overlap::Overlap(std::function<void()> reduce, std::function<void(std::size_t)> on_ready)
    : reduce_(std::move(reduce)), on_ready_(std::move(on_ready)) {}

Overlap::~Overlap() { cancel(); }

void Overlap::cut(std::span<const core::Bucket> buckets, std::size_t gradients) {
  const std::lock_guard lock(mutex_);
  marks_ = core::ReadyMarks(buckets, gradients);
  values_.assign(gradients, {});
}

void Overlap::begin(const void* step) {
  const std::lock_guard lock(mutex_);
  marks_.begin(step);
  std::ranges::fill(values_, Value{});
}

void Overlap::start() {
  const std::lock_guard lock(mutex_);
  started_ = true;
  startable_.clear();  // what an exception has left
  push_startable();
}

void Overlap::push_startable() {
  while (const auto bucket = marks_.start()) {
    if (marks_.all_started()) return;  // the last one is the caller's
    startable_.push_back(*bucket);
    queue_.push([this] { reduce_waiting(); });
  }
}

// Those that come while the thread reduces others are taken along, and their turns find nothing.
void Overlap::reduce_waiting() {
  {
    const std::lock_guard lock(mutex_);
    if (startable_.empty()) return;
  }
  reduce_();
}

std::optional<std::size_t> Overlap::next_waiting() {
  const std::lock_guard lock(mutex_);
  if (startable_.empty()) return std::nullopt;
  const std::size_t bucket = startable_.front();
  startable_.pop_front();
  return bucket;
}

bool Overlap::ready(const void* step, std::span<const std::size_t> gradients,
                    std::span<const void* const> data) {
  const std::lock_guard lock(mutex_);
  bool known = true;
  for (std::size_t i = 0; i < gradients.size(); ++i)
    known &= report(step, gradients[i], {.data = data.empty() ? nullptr : data[i]});
  if (started_) push_startable();
  return known;
}

bool Overlap::unset(const void* step, std::size_t gradient) {
  const std::lock_guard lock(mutex_);
  const bool known = report(step, gradient, {.is_set = false});
  if (started_) push_startable();
  return known;
}

bool Overlap::report(const void* step, std::size_t gradient, const Value& value) {
  if (gradient >= marks_.gradients()) return false;
  if (!marks_.mark(step, gradient)) return true;
  values_[gradient] = value;
  if (on_ready_) on_ready_(gradient);
  return true;
}

void Overlap::close() {
  const std::lock_guard lock(mutex_);
  if (started_ && marks_.under_way()) {
    for (std::size_t gradient = 0; on_ready_ && gradient < marks_.gradients(); ++gradient)
      if (!marks_.is_marked(gradient)) on_ready_(gradient);
    marks_.mark_all();
    push_startable();
  }
  marks_.end();
}

void Overlap::finish() {
  close();
  {
    const std::lock_guard lock(mutex_);
    started_ = false;
  }
  queue_.wait();
}

void Overlap::cancel() {
  {
    const std::lock_guard lock(mutex_);
    marks_.end();
    started_ = false;
    startable_.clear();
  }
  queue_.cancel();
}

bool Overlap::active() const {
  const std::lock_guard lock(mutex_);
  return started_;
}

}  // namespace elasticrun::worker::training
