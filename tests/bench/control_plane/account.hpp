// What the controller's side of a phase has cost: processor time, bytes, memory.
//
// Simulated hosts and workers run on the same thread, so the clock is looked at whenever the
// controller's side is entered, left, or goes from one part of its work to the next: several times
// for a sample, so it is the wall clock, for the processor's takes a call of the kernel, as long as
// a part. What others had of this processor is taken out at the end of a phase, from all parts
// alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "base/time.hpp"
#include "simulate/queue.hpp"

namespace elasticrun::bench {

struct Cost {
  Duration decode{};  // frames and messages that came
  Duration core{};    // the controller core: step and wake_at
  Duration encode{};  // messages and frames that go, queues, events as JSON
  // By the wall clock, as these three are: each may have met with another process of the machine.
  Duration longest_call{};  // of the core
  Duration longest_turn{};  // what one event keeps the controller's thread busy for, in all
  // From the arrival of an event to the end of its turn, if events wait for one thread as fast as
  // this one. The virtual clock does not know of it: nobody is late because of it.
  Duration longest_delay{};
  std::uint64_t turns = 0;
  std::uint64_t sent = 0, received = 0;  // bytes with their headers, without TLS
  std::size_t most_bytes = 0;            // of memory, at one time

  Duration all() const { return decode + core + encode; }
};

// The phase has cost more than it may.
struct OverLimit : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Account {
 public:
  Account(const simulate::Queue& clock, Duration limit);

  enum class Part { outside, decode, core, encode };
  // The work that begins now belongs to that part. Leaving for outside ends a turn, and throws
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
  Duration look_{};  // what one look at the clock takes
  Part part_ = Part::outside;
  Duration since_{};
  Duration wall_began_{}, processor_began_{};  // when the phase began, by each clock
  Duration turn_{};
  Time busy_until_{};  // by that one thread
  Cost cost_;
};

}  // namespace elasticrun::bench
