// A transfer in rounds, as NCCL wants it: all messages of a round go together.
//
// In round k the rank at place i of a part's route passes on the part's chunk k - i, which it
// received in the round before. So both ends of a message post it in the same round, and no rank
// waits for a later round of another rank. A chunk is as many messages as it has pieces of memory,
// which are the same on all ranks: nothing is copied on the way.
#include <algorithm>

#include "worker/collective/group.hpp"
#include "worker/state/transfer_work.hpp"

namespace elasticrun::worker::state {

// A chunk that comes or goes in a round.
struct StateTransfer::Passing {
  std::size_t part = 0;
  std::size_t index = 0;  // of the chunk in its part
  std::vector<std::span<std::byte>> pieces;
  std::vector<std::unique_ptr<collective::Pending>> messages;
  bool first_seen = false;  // in this round
};

void StateTransfer::move_in_rounds() {
  std::size_t rounds = 0;
  for (std::size_t part = 0; part < work_->plan.size(); ++part)
    rounds = std::max(rounds, work_->chunks[part].size() + work_->plan[part].route.size() - 2);
  for (std::size_t round = 0; round < rounds; ++round) {
    std::vector<Passing> passing = post_round(round);
    for (Passing& one : passing) {
      for (std::size_t i = 0; i < one.pieces.size(); ++i)
        await(one.messages[i], one.pieces[i].size());
      if (one.first_seen) work_->hashes[one.part][one.index] = work_->hash(one.pieces);
    }
  }
  for (std::size_t part = 0; part < work_->plan.size(); ++part) verify(part);
}

std::vector<StateTransfer::Passing> StateTransfer::post_round(std::size_t round) {
  std::vector<Passing> passing;
  for (std::size_t part = 0; part < work_->plan.size(); ++part) {
    const std::vector<int>& route = work_->plan[part].route;
    const std::size_t place = place_of(work_->plan[part], group_.rank());
    const auto has = [&](std::size_t hop) {
      return round >= hop && round - hop < work_->chunks[part].size();
    };
    const auto pass = [&](std::size_t hop, bool first_seen, auto&& post) {
      Passing one{part, round - hop, pieces_of(part, round - hop), {}, first_seen};
      for (const std::span<std::byte> piece : one.pieces)
        one.messages.push_back(post(piece, static_cast<std::uint32_t>(part)));
      passing.push_back(std::move(one));
    };
    if (place > 0 && place < route.size() && has(place - 1))
      pass(place - 1, true, [&](std::span<std::byte> piece, std::uint32_t tag) {
        return group_.post_recv(route[place - 1], piece.data(), piece.size(), tag);
      });
    if (place + 1 < route.size() && has(place))
      pass(place, !receiver_, [&](std::span<std::byte> piece, std::uint32_t tag) {
        return group_.post_send(route[place + 1], piece.data(), piece.size(), tag);
      });
  }
  return passing;
}

// Where a chunk lies or will lie on this rank.
std::vector<std::span<std::byte>> StateTransfer::pieces_of(std::size_t part,
                                                           std::size_t index) const {
  const Chunk& chunk = work_->chunks[part][index];
  std::vector<std::span<std::byte>> pieces = work_->image.pieces(chunk.offset, chunk.bytes);
  if (std::byte* const staging = work_->staging.data()) {
    work_->staging.prepare(chunk.offset, chunk.bytes);
    std::byte* at = staging + chunk.offset;
    for (std::span<std::byte>& piece : pieces) {
      piece = {at, piece.size()};
      at += piece.size();
    }
  }
  return pieces;
}

}  // namespace elasticrun::worker::state
