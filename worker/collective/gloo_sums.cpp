// See gloo_sums.hpp.
#include "worker/collective/gloo_sums.hpp"

#include <gloo/math.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>

namespace elasticrun::worker::collective {
namespace {

// Slots that do not collide with others of a group (gloo_group.cpp).
constexpr std::uint64_t doubling_slot = std::uint64_t{0x41} << 56;
constexpr std::uint64_t pair_slot = std::uint64_t{0x43} << 56;

}  // namespace

Sum sum_of(DataType type) {
  return type == DataType::float32 ? static_cast<Sum>(&gloo::sum<float>)
                                   : static_cast<Sum>(&gloo::sum<double>);
}

// Sums by recursive doubling. Partners differ by 1, then by 2, 4, ...: each adds the other's sum to
// its own, and has the sum over twice as many ranks. Both have the same bits, for both add the
// higher rank's to the lower rank's (a + b is b + a, but of two NaNs the first is kept); so all
// ranks have the same bits in the end. Ranks from the greatest power of two on first give their
// numbers to the rank that far below, and receive the result from it at the end. Why not in halves,
// as a hypercube does: for data this small the number of messages decides the cost.
void GlooSums::by_doubling(const std::shared_ptr<gloo::Context>& mesh, void* data, DataType type,
                           std::size_t count) {
  const int rank = mesh->rank, size = mesh->size;
  const std::size_t bytes = count * size_of(type);
  if (theirs_.size() < bytes) theirs_.resize(bytes);
  const auto own = mesh->createUnboundBuffer(data, bytes);
  const auto other = mesh->createUnboundBuffer(theirs_.data(), bytes);
  const auto send = [&](int peer) { own->send(peer, doubling_slot, 0, bytes); };
  const auto take = [&](auto& buffer, int peer) { buffer->recv(peer, doubling_slot, 0, bytes); };
  const auto add = [&](int peer) {
    other->waitRecv(no_limit);
    const bool first = rank < peer;
    sum_of(type)(data, first ? data : theirs_.data(), first ? theirs_.data() : data, count);
  };
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(size)));
  const int below = rank - power, above = rank + power;
  if (below >= 0) {
    send(below);
    own->waitSend(no_limit);
    take(own, below);
    own->waitRecv(no_limit);
    return;
  }
  if (above < size) {
    take(other, above);
    add(above);
  }
  for (int distance = 1; distance < power; distance *= 2) {
    const int partner = rank ^ distance;
    take(other, partner);
    send(partner);
    own->waitSend(no_limit);
    add(partner);
  }
  if (above < size) {
    send(above);
    own->waitSend(no_limit);
  }
}

// Both send all they have, a chunk after the other, and add what comes. A ring of two sends as many
// bytes, in twice as many rounds. A few chunks are under way at a time, so that adding takes place
// meanwhile; a chunk is added to when it has been sent. Both have the same bits, as above.
void GlooSums::between_two(const std::shared_ptr<gloo::Context>& mesh,
                           std::span<const Group::Row> rows) {
  constexpr std::size_t chunk_bytes = 256u << 10, depth = 4;
  struct Chunk {
    const Group::Row* row;
    gloo::transport::UnboundBuffer* own;
    std::size_t at, bytes;
  };
  const int peer = 1 - mesh->rank;
  std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> buffers;
  std::vector<Chunk> chunks;
  for (const Group::Row& row : rows) {
    const std::size_t bytes = row.count * size_of(row.type);
    if (bytes == 0) continue;
    buffers.push_back(mesh->createUnboundBuffer(row.data, bytes));
    for (std::size_t at = 0; at < bytes; at += chunk_bytes)
      chunks.push_back({&row, buffers.back().get(), at, std::min(chunk_bytes, bytes - at)});
  }
  if (theirs_.size() < depth * chunk_bytes) theirs_.resize(depth * chunk_bytes);
  const auto other = mesh->createUnboundBuffer(theirs_.data(), theirs_.size());
  const auto begin = [&](std::size_t i) {
    if (i >= chunks.size()) return;
    other->recv(peer, pair_slot, i % depth * chunk_bytes, chunks[i].bytes);
    chunks[i].own->send(peer, pair_slot, chunks[i].at, chunks[i].bytes);
  };
  for (std::size_t i = 0; i < depth; ++i) begin(i);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const Chunk& chunk = chunks[i];
    other->waitRecv(no_limit);
    chunk.own->waitSend(no_limit);
    std::byte* const ours = static_cast<std::byte*>(chunk.row->data) + chunk.at;
    const std::byte* const theirs = theirs_.data() + i % depth * chunk_bytes;
    const bool first = mesh->rank == 0;
    sum_of(chunk.row->type)(ours, first ? ours : theirs, first ? theirs : ours,
                            chunk.bytes / size_of(chunk.row->type));
    begin(i + depth);
  }
}

}  // namespace elasticrun::worker::collective
