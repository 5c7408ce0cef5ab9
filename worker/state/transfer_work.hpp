// What the two ways of a transfer share (state_transfer.cpp, transfer_rounds.cpp): the chunks in
// which the parts travel, and their hashes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/core/transfer_plan.hpp"
#include "worker/state/state_image.hpp"
#include "worker/state/state_transfer.hpp"

namespace elasticrun::worker::state {

struct Chunk {
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
};

// Stands for a hash that was not taken. A chunk that has this hash by chance is not compared.
inline constexpr std::uint64_t not_taken = 0;

// Where a rank stands in the route of a part; behind the last: nowhere.
std::size_t place_of(const core::TransferPart& part, int rank);

struct StateTransfer::Work {
  Work(const StateTable& table, const std::vector<bool>& holds, bool in_rounds);

  // Of a chunk in these pieces. None is taken where one of them lies on the GPU: the networks
  // between GPUs check what they carry.
  std::uint64_t hash(std::span<const std::span<std::byte>> pieces) const;

  const StateImage image;
  const gpu::Gpu* const gpu;
  const std::vector<core::TransferPart> plan;
  std::vector<std::vector<Chunk>> chunks;          // by part
  std::vector<std::vector<std::uint64_t>> hashes;  // by part and chunk, as seen by this rank
  StagingMemory staging;                           // not allocated: receive in place
};

}  // namespace elasticrun::worker::state
