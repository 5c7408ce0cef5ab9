// See side_stream.hpp.
#include "worker/gpu/side_stream.hpp"

namespace elasticrun::worker::gpu {

void SideStream::mark(std::size_t number) {
  gpu_->enter();
  const std::lock_guard lock(mutex_);
  marks_.try_emplace(number, *gpu_).first->second.record(gpu_->stream());
}

void SideStream::follow(std::span<const std::size_t> numbers) {
  gpu_->enter();
  const std::lock_guard lock(mutex_);
  if (!stream_) stream_.emplace(*gpu_);
  gpu_->work_on(stream_->get());
  for (const std::size_t number : numbers) marks_.at(number).hold(stream_->get());
}

void SideStream::join() {
  const std::lock_guard lock(mutex_);
  if (!stream_) return;
  gpu_->enter();
  if (!joined_) joined_.emplace(*gpu_);
  joined_->record(stream_->get());
  joined_->hold(gpu_->stream());
}

}  // namespace elasticrun::worker::gpu
