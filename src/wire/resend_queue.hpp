// The frames that the peer may not have received yet, kept in case the connection breaks, until the
// peer says how many it has. Pure.
//
// TCP acknowledges bytes to the kernel, and there is no way to ask it afterwards which ones the
// program at the other end has read. So both ends count frames themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "base/ids.hpp"

namespace elasticrun::wire {

class ResendQueue {
 public:
  struct Entry {
    WorkerId worker;
    std::string payload;
  };

  // `bytes_max`: the most that is kept for a peer that does not acknowledge.
  explicit ResendQueue(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // Adds the next frame. False: the queue was full, or the payload is too large for a frame, and if
  // the connection is lost before the peer has acknowledged all frames so far, it cannot be
  // resumed.
  bool push(WorkerId worker, std::string payload);
  // The peer has received `count` frames since the beginning. False: that is impossible.
  bool acknowledge(std::uint64_t count);
  // The frames that the peer has not acknowledged, oldest first.
  const std::deque<Entry>& entries() const { return entries_; }
  bool is_whole() const { return lost_ <= acknowledged_; }
  // The bytes of this worker's frames among them.
  std::size_t bytes_of(WorkerId worker) const {
    const auto found = bytes_by_worker_.find(worker);
    return found == bytes_by_worker_.end() ? 0 : found->second;
  }

 private:
  std::size_t bytes_max_;
  std::deque<Entry> entries_;
  std::size_t bytes_ = 0;
  std::map<WorkerId, std::size_t> bytes_by_worker_;  // of entries_; none is 0
  std::uint64_t pushed_ = 0;                         // frames, since the beginning
  std::uint64_t acknowledged_ = 0;                   // likewise
  std::uint64_t lost_ = 0;  // number of the last frame that was not kept; 0: all were kept
};

}  // namespace elasticrun::wire
