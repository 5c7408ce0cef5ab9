// See resend_queue.hpp.
#include "wire/resend_queue.hpp"

#include <utility>

#include "wire/limits.hpp"

namespace elasticrun::wire {

bool ResendQueue::push(WorkerId worker, std::string payload) {
  ++pushed_;
  bytes_ += payload.size();
  if (lost_ > acknowledged_ || bytes_ > bytes_max_ || payload.size() > frame_bytes_max) {
    lost_ = pushed_;
    entries_.clear();
    bytes_by_worker_.clear();
    bytes_ = 0;
    return false;
  }
  if (!payload.empty()) bytes_by_worker_[worker] += payload.size();
  entries_.push_back({worker, std::move(payload)});
  return true;
}

bool ResendQueue::acknowledge(std::uint64_t count) {
  if (count < acknowledged_ || count > pushed_) return false;
  acknowledged_ = count;
  for (; entries_.size() > pushed_ - acknowledged_; entries_.pop_front()) {
    const auto& [worker, payload] = entries_.front();
    bytes_ -= payload.size();
    const auto of_worker = bytes_by_worker_.find(worker);
    if (of_worker != bytes_by_worker_.end() && (of_worker->second -= payload.size()) == 0)
      bytes_by_worker_.erase(of_worker);
  }
  return true;
}

}  // namespace elasticrun::wire
