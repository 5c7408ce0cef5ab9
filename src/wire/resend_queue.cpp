// See resend_queue.hpp.
#include "wire/resend_queue.hpp"

#include <utility>

namespace elasticrun::wire {

bool ResendQueue::push(WorkerId worker, std::string payload) {
  if (overflown_) return false;
  bytes_ += payload.size();
  if (bytes_ > bytes_max_) {
    overflown_ = true;
    entries_.clear();
    return false;
  }
  entries_.push_back({worker, std::move(payload)});
  return true;
}

bool ResendQueue::acknowledge(std::uint64_t count) {
  if (count < acknowledged_ || count - acknowledged_ > entries_.size()) return false;
  for (; acknowledged_ < count; ++acknowledged_) {
    bytes_ -= entries_.front().payload.size();
    entries_.pop_front();
  }
  return true;
}

}  // namespace elasticrun::wire
