// The registered state seen as one row of bytes, though it lies in many pieces; and large staging
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/state/state.hpp"

namespace elasticrun::worker::state {

class StateImage {
 public:
  // `gpu` is the GPU of the segments that lie on one.
  explicit StateImage(std::span<const Segment> segments, const gpu::Gpu* gpu = nullptr);

  // The address of [offset, offset + bytes); null when these bytes do not lie in one piece of host
  // memory.
  std::byte* in_one_piece(std::uint64_t offset, std::size_t bytes) const;
  // The memory of [offset, offset + bytes), wherever it lies.
  std::vector<std::span<std::byte>> pieces(std::uint64_t offset, std::size_t bytes) const;
  void copy_out(std::uint64_t offset, std::size_t bytes, std::byte* to) const noexcept;
  void copy_in(std::uint64_t offset, std::size_t bytes, const std::byte* from) const noexcept;

 private:
  // Calls piece(segment, memory, bytes) for each piece of the range, in order.
  template <class Piece>
  void for_pieces(std::uint64_t offset, std::size_t bytes, Piece&& piece) const;
  std::size_t segment_at(std::uint64_t offset) const;
  void copy(const Segment& segment, std::byte* to, const std::byte* from, std::size_t bytes) const;

  std::span<const Segment> segments_;
  const gpu::Gpu* const gpu_;
  std::vector<std::uint64_t> begins_;  // offset of each segment in the row
};

// Anonymous memory that costs nothing until it is touched, and then few page faults. Why not
// malloc: its memory would come in pages of 4 KiB, and 400 MB of those take 100,000 faults.
class StagingMemory {
 public:
  StagingMemory() = default;
  ~StagingMemory();
  StagingMemory(const StagingMemory&) = delete;
  StagingMemory& operator=(const StagingMemory&) = delete;

  void allocate(std::size_t bytes);  // throws std::bad_alloc
  // Takes the page faults of this range now, on this thread, not on the receiving thread.
  void prepare(std::size_t offset, std::size_t bytes) const noexcept;
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace elasticrun::worker::state
