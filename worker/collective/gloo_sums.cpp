// See gloo_sums.hpp.
#include "worker/collective/gloo_sums.hpp"

#include <gloo/math.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <array>
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

namespace {

bool is_summed_here(const Group::Row& row, std::size_t bytes_max) {
  const bool type_is = row.type == DataType::float32 || row.type == DataType::float64;
  return type_is && row.count * size_of(row.type) <= bytes_max;
}

}  // namespace

const Group::Row* RowFeed::peek() {
  if (rows_.empty()) {
    rows_ = source_.next();
    if (rows_.empty()) return nullptr;
    under_way_.push_back(rows_.size());
  }
  return &rows_.front();
}

Group::Row RowFeed::take() {
  const Group::Row row = rows_.front();
  rows_ = rows_.subspan(1);
  return row;
}

void RowFeed::summed() {
  if (--under_way_.front() > 0) return;
  under_way_.pop_front();
  source_.summed();
}

// Both send all they have, a chunk after the other, and add what comes. A ring of two sends as many
// bytes, in twice as many rounds. A few chunks are under way at a time, so that adding takes place
// meanwhile; a chunk is added to when it has been sent. Rows that come meanwhile follow without a
// pause. Both have the same bits, as above.
void GlooSums::between_two(const std::shared_ptr<gloo::Context>& mesh, RowFeed& rows,
                           std::size_t row_bytes_max) {
  constexpr std::size_t chunk_bytes = 256u << 10, depth = 4;
  struct Chunk {
    gloo::transport::UnboundBuffer* own = nullptr;  // null: of an empty row
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    DataType type{};
    bool ends_row = false;
  };
  const int peer = 1 - mesh->rank;
  std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> buffers;  // of each row
  if (theirs_.size() < depth * chunk_bytes) theirs_.resize(depth * chunk_bytes);
  const auto other = mesh->createUnboundBuffer(theirs_.data(), theirs_.size());
  std::array<Chunk, depth> chunks;
  std::size_t begun = 0, done = 0;
  Group::Row row;
  std::size_t at = 0, bytes = 0;  // of the row that is being sent
  const auto begin_row = [&] {
    const Group::Row* const next = rows.peek();
    if (!next || !is_summed_here(*next, row_bytes_max)) return false;
    row = rows.take();
    at = 0;
    bytes = row.count * size_of(row.type);
    if (bytes > 0) buffers.push_back(mesh->createUnboundBuffer(row.data, bytes));
    return true;
  };
  const auto begin_chunk = [&] {
    if (at == bytes && !begin_row()) return false;
    const std::size_t place = begun++ % depth, now = std::min(chunk_bytes, bytes - at);
    Chunk& chunk = chunks[place];
    chunk = {nullptr, static_cast<std::byte*>(row.data) + at, now, row.type, at + now == bytes};
    if (now == 0) return true;
    chunk.own = buffers.back().get();
    other->recv(peer, pair_slot, place * chunk_bytes, now);
    chunk.own->send(peer, pair_slot, at, now);
    at += now;
    return true;
  };
  for (;;) {
    while (begun < done + depth && begin_chunk()) {
    }
    if (done == begun) return;
    const Chunk& chunk = chunks[done % depth];
    if (chunk.own) {
      other->waitRecv(no_limit);
      chunk.own->waitSend(no_limit);
      const std::byte* const theirs = theirs_.data() + done % depth * chunk_bytes;
      const bool first = mesh->rank == 0;
      sum_of(chunk.type)(chunk.data, first ? chunk.data : theirs, first ? theirs : chunk.data,
                         chunk.bytes / size_of(chunk.type));
    }
    ++done;
    if (chunk.ends_row) rows.summed();
  }
}

}  // namespace elasticrun::worker::collective
