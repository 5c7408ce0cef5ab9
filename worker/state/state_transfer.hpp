// Brings the state to the members that lack it, after a switch and before the next step.
//
// A receiver never overwrites a whole state: what arrives is kept beside the program's memory,
// checked (size, layout, a hash per chunk, taken by the holder while the chunk is under way), and
// copied in one go by commit(). Until then it still answers with its old step, and when the group
// breaks on the way nothing has happened.
//
// Why a hash when TCP has a checksum: that one is 16 bits and ends at the network card, and a
// holder whose memory changes during the transfer (a program that trains in a thread of its own) is
// found as well.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "worker/collective/group.hpp"
#include "worker/state/state.hpp"

namespace elasticrun::worker::state {

// Workers registered different state, or holders are not at the same progress. Thrown on all ranks;
// the group is still usable, and trying again does not help.
struct StateMismatch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct TransferResult {
  std::uint64_t bytes = 0;  // that each receiver got, progress included; 0 when all hold the state
  std::chrono::nanoseconds took{0};
};

// One transfer. Used on all ranks of the group by one thread, with the same `holds` (by rank, at
// least one holder); table sealed, its memory unchanged until exchange() returns.
class StateTransfer {
 public:
  // `moved`, where it is given, counts the bytes that have come or gone.
  StateTransfer(collective::Group& group, std::vector<bool> holds, StateTable& table,
                std::atomic<std::uint64_t>* moved = nullptr);
  ~StateTransfer();

  // Collective. `progress` is what travels with the state: given by holders, equal on all of
  // them (checked), ignored on receivers. With `keep_old_state` a receiver needs memory for a
  // second state; without (a newcomer, which has nothing to lose and answers "none" until commit())
  // it receives straight into the registered memory, which is worth nothing if this throws. Throws
  // GroupBroken, StateMismatch, std::bad_alloc.
  TransferResult exchange(const std::string& progress, bool keep_old_state);
  // Receivers, after exchange(): the new state becomes the state, its progress is put into
  // `progress`. Does nothing on holders.
  void commit(std::string& progress) noexcept;

 private:
  struct Work;
  struct InFlight;
  void agree(const std::string& progress);
  void send_part(std::size_t index);
  void receive_parts();
  void expect(InFlight& slot);
  void move_in_rounds();
  void post_round(std::size_t round, std::vector<InFlight>& slots);
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
  std::string progress_;  // as received
  std::unique_ptr<Work> work_;
};

}  // namespace elasticrun::worker::state
