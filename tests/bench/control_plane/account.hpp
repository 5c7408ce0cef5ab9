// What the controller's side of a phase has cost: processor time, bytes, memory.
//
// Simulated hosts and workers run on the same thread, so the clock is read whenever control enters
// or leaves the controller's side, or goes from one part of its work to the next: several times per
// sample. It is the wall clock, because reading the processor's clock takes a system call, which
// costs as much as a whole part. The share of the processor that other processes had is taken out
// at the end of a phase, from all parts alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "base/time.hpp"
#include "simulate/queue.hpp"

namespace elasticrun::bench {

struct Cost {
  Duration decode{};  // incoming frames and messages
  Duration core{};    // the controller core: step and wake_at
  Duration encode{};  // outgoing messages and frames, queues, events as JSON
  // The next three are wall time: each may include time that another process had the processor.
  Duration longest_call{};  // of the core
  Duration longest_turn{};  // the longest that one event keeps the controller's thread busy
  // The longest time from the arrival of an event to the end of its turn, if all events waited for
  // one thread as fast as this one. The virtual clock ignores it, so it delays no host.
  Duration longest_delay{};
  std::uint64_t turns = 0;
  std::uint64_t sent = 0, received = 0;  // bytes with their headers, without TLS
  std::size_t most_bytes = 0;            // the peak of the memory in use

  Duration all() const { return decode + core + encode; }
};

// Thrown when a phase costs more than it may.
struct OverLimit : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Account {
 public:
  Account(const simulate::Queue& clock, Duration limit);

  enum class Part { outside, decode, core, encode };
  // Charges the work that begins now to that part. Going to `outside` ends a turn, and throws
  // OverLimit when the limit is passed.
  void now_in(Part part);
  Part part() const { return part_; }
  void sent(std::size_t bytes) { cost_.sent += bytes; }
  void received(std::size_t bytes) { cost_.received += bytes; }

  const Cost& cost() const { return cost_; }
  void begin_phase();
  Cost end_phase() const;

 private:
  void charge(Duration time);
  void end_turn();

  const simulate::Queue& clock_;
  Duration limit_;
  Duration look_{};  // the time that one reading of the clock takes
  Part part_ = Part::outside;
  Duration since_{};
  Duration wall_began_{}, processor_began_{};  // when the phase began, by each clock
  Duration turn_{};
  Time busy_until_{};  // when that one thread would be free again
  Cost cost_;
};

}  // namespace elasticrun::bench
