// See state_copy.hpp.
#include "worker/state/state_copy.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

namespace elasticrun::worker::state {
namespace {

gpu::Arithmetic::Memory memory_for(const Segment& segment, const gpu::Gpu* gpu) {
  if (!segment.on_gpu) {
    const auto memory = std::make_shared<std::vector<std::byte>>(segment.bytes);
    return {memory, memory->data()};
  }
  const auto buffer = std::make_shared<gpu::GpuBuffer>(*gpu);
  return {buffer, buffer->reserve(segment.bytes)};
}

}  // namespace

StateCopy::StateCopy(StateTable& table) : table_(table), gpu_(table.gpu()) { make_pieces(); }

// Memory is kept where an array is as large as the one that was there before.
void StateCopy::make_pieces() {
  const std::span<const Segment> segments = table_.segments();
  pieces_.resize(std::min(pieces_.size(), segments.size()));
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const Segment& segment = segments[i];
    if (i == pieces_.size()) pieces_.emplace_back();
    Piece& piece = pieces_[i];
    if (!piece.copy || piece.segment.bytes != segment.bytes ||
        piece.segment.on_gpu != segment.on_gpu)
      piece.copy = memory_for(segment, gpu_);
    piece.segment = segment;
  }
}

void StateCopy::take() {
  table_.look();
  make_pieces();
  late_ = table_.late();
  objects_ = table_.objects();
  for (const Piece& piece : pieces_) copy(piece, piece.copy.get(), piece.segment.data);
}

void StateCopy::put_back() {
  table_.make_room(late_);
  for (std::size_t i = 0; i < pieces_.size(); ++i) pieces_[i].segment = table_.segments()[i];
  for (const Piece& piece : pieces_) copy(piece, piece.segment.data, piece.copy.get());
  if (gpu_) gpu_->wait();
  table_.take_objects(objects_);
}

bool StateCopy::holds() const {
  return std::ranges::all_of(pieces_, [](const Piece& piece) {
    const Segment& segment = piece.segment;
    return segment.on_gpu || std::memcmp(segment.data, piece.copy.get(), segment.bytes) == 0;
  });
}

void StateCopy::copy(const Piece& piece, void* to, const void* from) const {
  if (!piece.segment.on_gpu) {
    std::memcpy(to, from, piece.segment.bytes);
    return;
  }
  gpu_->enter();
  gpu_->copy(to, from, piece.segment.bytes, gpu_->stream());
}

}  // namespace elasticrun::worker::state
