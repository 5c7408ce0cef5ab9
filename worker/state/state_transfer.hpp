// Brings the state to the members that lack it, after a switch and before the next step.
//
// A receiver never overwrites a complete state on the way: what arrives is kept beside the
// program's memory, checked (size, layout, a hash per chunk, taken by the holder while the chunk is
// under way), and copied in one go by commit(). Until then the receiver still answers with its old
// step, and when the group breaks during the transfer nothing has happened.
//
// Why a hash when TCP has a checksum: the checksum has 16 bits and ends at the network card. The
// hash also finds a holder whose memory changes during the transfer (a program that trains in a
// thread of its own).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "worker/collective/group.hpp"
#include "worker/state/carried.hpp"
#include "worker/state/state.hpp"

namespace elasticrun::worker::state {

// Workers have registered different state, or holders are not at the same progress. Thrown on all
// ranks; the group is still usable, and trying again does not help.
struct StateMismatch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct TransferResult {
  std::uint64_t bytes = 0;  // received by each receiver, with the progress; 0: all hold the state
  std::chrono::nanoseconds took{0};
};

// One transfer. Used on all ranks of the group by one thread, with the same `holds` (by rank, at
// least one holder). The table is sealed, and its memory does not change until exchange() returns.
class StateTransfer {
 public:
  // `moved`, unless it is null, is increased by the bytes received and sent.
  StateTransfer(collective::Group& group, std::vector<bool> holds, StateTable& table,
                std::atomic<std::uint64_t>* moved = nullptr);
  ~StateTransfer();

  // Collective. `progress` travels with the state: holders give it, equal on all of them (checked);
  // receivers' is ignored. With `keep_old_state` a receiver needs memory for a second state.
  // Without it (for a newcomer, which has nothing to lose and answers "none" until commit()) it
  // receives straight into the registered memory, whose contents are lost if this throws. Holders
  // look at their state source, and receivers make room as the first holder has it. Throws
  // GroupBroken, StateMismatch, SourceFailed, std::bad_alloc.
  TransferResult exchange(const std::string& progress, bool keep_old_state);
  // On receivers, after exchange(): the new state replaces the old one. Returns what came with it;
  // the caller hands the objects to the table. Does nothing on holders.
  Carried commit() noexcept;

 private:
  struct Work;
  struct InFlight;
  struct Passing;
  void agree(const std::string& progress);
  void make_room();
  void send_part(std::size_t index);
  void receive_parts();
  void expect(InFlight& slot);
  void move_in_rounds();
  std::vector<Passing> post_round(std::size_t round);
  std::vector<std::span<std::byte>> pieces_of(std::size_t part, std::size_t index) const;
  std::byte* place_of_chunk(InFlight& slot) const;
  void take(InFlight& slot);
  void verify(std::size_t part);
  void await(std::unique_ptr<collective::Pending>& pending, std::size_t bytes);

  collective::Group& group_;
  const std::vector<bool> holds_;
  StateTable& table_;
  std::atomic<std::uint64_t>* const moved_;
  int lead_ = -1;  // the first holder: its layout and progress count
  bool receiver_ = false;
  bool complete_ = false;
  Carried carried_;   // the lead's, as received
  std::string text_;  // the same, as it travels
  std::unique_ptr<Work> work_;
};

}  // namespace elasticrun::worker::state
