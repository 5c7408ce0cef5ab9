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

StateCopy::StateCopy(const StateTable& table) : gpu_(table.gpu()) {
  for (const Segment& segment : table.segments())
    pieces_.push_back({segment, memory_for(segment, gpu_)});
}

void StateCopy::take() {
  for (const Piece& piece : pieces_) copy(piece, piece.copy.get(), piece.segment.data);
}

void StateCopy::put_back() const {
  for (const Piece& piece : pieces_) copy(piece, piece.segment.data, piece.copy.get());
  if (gpu_) gpu_->wait();
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
