// What the peer may not have received yet, should the connection break: frames by number, until the
// peer says how many it has. Pure.
//
// TCP acknowledges bytes to the kernel, and nobody can ask it afterwards which ones the program at
// the other end has read. So both ends count frames themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
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

  // `bytes_max`: more than that is not kept for a peer that acknowledges nothing.
  explicit ResendQueue(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // The next frame. False: the queue was full, and a connection that is lost before the peer has
  // acknowledged all of it cannot be resumed.
  bool push(WorkerId worker, std::string payload);
  // The peer has received so many frames since the beginning. False: it cannot have.
  bool acknowledge(std::uint64_t count);
  // Those it has not, oldest first.
  const std::deque<Entry>& entries() const { return entries_; }
  bool is_whole() const { return lost_ <= acknowledged_; }

 private:
  std::size_t bytes_max_;
  std::deque<Entry> entries_;
  std::size_t bytes_ = 0;
  std::uint64_t pushed_ = 0;  // frames, since the beginning
  std::uint64_t acknowledged_ = 0;
  std::uint64_t lost_ = 0;  // the last frame that was not kept; 0: all were
};

}  // namespace elasticrun::wire
