// See state_image.hpp.
#include "worker/state/state_image.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace elasticrun::worker::state {

StateImage::StateImage(std::span<const Segment> segments, const gpu::Gpu* gpu)
    : segments_(segments), gpu_(gpu) {
  std::uint64_t begin = 0;
  for (const Segment& segment : segments_) {
    begins_.push_back(begin);
    begin += segment.bytes;
  }
}

std::size_t StateImage::segment_at(std::uint64_t offset) const {
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), offset);
  return static_cast<std::size_t>(after - begins_.begin()) - 1;
}

std::byte* StateImage::in_one_piece(std::uint64_t offset, std::size_t bytes) const {
  const std::size_t i = segment_at(offset);
  const std::size_t within = offset - begins_[i];
  if (segments_[i].on_gpu) return nullptr;
  return within + bytes <= segments_[i].bytes ? segments_[i].data + within : nullptr;
}

template <class Piece>
void StateImage::for_pieces(std::uint64_t offset, std::size_t bytes, Piece&& piece) const {
  if (bytes == 0) return;
  std::size_t i = segment_at(offset);
  std::size_t within = offset - begins_[i];
  while (bytes > 0) {
    const std::size_t here = std::min(bytes, segments_[i].bytes - within);
    piece(segments_[i], segments_[i].data + within, here);
    bytes -= here;
    within = 0;
    ++i;
  }
}

std::vector<std::span<std::byte>> StateImage::pieces(std::uint64_t offset,
                                                     std::size_t bytes) const {
  std::vector<std::span<std::byte>> found;
  for_pieces(offset, bytes, [&](const Segment&, std::byte* memory, std::size_t here) {
    if (here > 0) found.emplace_back(memory, here);
  });
  return found;
}

void StateImage::copy_out(std::uint64_t offset, std::size_t bytes, std::byte* to) const noexcept {
  for_pieces(offset, bytes, [&](const Segment& segment, std::byte* memory, std::size_t here) {
    copy(segment, to, memory, here);
    to += here;
  });
}

void StateImage::copy_in(std::uint64_t offset, std::size_t bytes,
                         const std::byte* from) const noexcept {
  for_pieces(offset, bytes, [&](const Segment& segment, std::byte* memory, std::size_t here) {
    copy(segment, memory, from, here);
    from += here;
  });
}

// A GPU failure in here ends the process, since the callers are noexcept: the state may be
// half-new.
void StateImage::copy(const Segment& segment, std::byte* to, const std::byte* from,
                      std::size_t bytes) const {
  if (!segment.on_gpu) {
    std::memcpy(to, from, bytes);
    return;
  }
  gpu_->enter();
  gpu_->copy_and_wait(to, from, bytes, gpu_->stream());
}

StagingMemory::~StagingMemory() {
  if (data_) ::munmap(data_, bytes_);
}

void StagingMemory::allocate(std::size_t bytes) {
  if (bytes == 0) return;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(memory);
  bytes_ = bytes;
  ::madvise(memory, bytes, MADV_HUGEPAGE);  // only a hint
}

void StagingMemory::prepare(std::size_t offset, std::size_t bytes) const noexcept {
  constexpr std::size_t page = 4096;
  const std::size_t begin = offset / page * page;
  const std::size_t end = std::min((offset + bytes + page - 1) / page * page, bytes_);
  ::madvise(data_ + begin, end - begin, MADV_POPULATE_WRITE);  // fails on old kernels: faults later
}

}  // namespace elasticrun::worker::state
