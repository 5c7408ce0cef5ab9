// Detects that the transfer of the state to the members of a new world stands still.
//
// The timeout runs from when the first member is in the transfer, and not while any other member is
// in a step or in the program's own code (the end of an epoch, a loop of its own), since the others
// wait for that one. Every byte that moves restarts the timeout, and it grows with the size of the
// state, which has to be hashed and copied as well. A limit for the whole transfer would have to
// know the speed of the network.
//
// A worker is stuck if it trains in no world and its samples say that it is in a reduction, or in a
// transfer that began before this one: its training thread hangs in a group that was aborted, in a
// driver or in the kernel, and will not enter this world either. Pure.
#pragma once

#include <vector>

#include "base/id_map.hpp"
#include "base/ids.hpp"
#include "base/time.hpp"
#include "wire/messages.hpp"

namespace elasticrun::rendezvous {

class TransferWatch {
 public:
  // The members of the new world were sent Go. `patience`: longest time without a byte, for a state
  // of size 0. `training`: the members of the present world, if it goes on until they enter the new
  // one.
  void begin(const std::vector<wire::Member>& members, std::uint64_t state_bytes, Duration patience,
             const std::vector<WorkerId>& training, Time now);
  void sample(WorkerId worker, const wire::Sample& sample, Time now);
  // The worker is in the new world with the state: its part is done.
  void entered(WorkerId worker, Time now);
  void end();
  // The controller itself stood still for this long.
  void stood_still(Duration time) { last_sign_ += time; }

  // When the transfer will have stood still for too long; never: the timeout does not run.
  Time deadline() const;
  // The members that will not enter, by their last samples.
  std::vector<WorkerId> stuck() const;

 private:
  struct Member {
    bool busy = true;     // in a step or in the program's code; assumed until its first sample
    bool trains = false;  // is in the present world
    bool moving = false;  // is in this transfer
    bool stuck = false;   // hangs in an earlier group
    std::uint64_t bytes = 0;
    bool waits() const { return moving || stuck; }
  };
  void count(const Member& member, int by);

  IdMap<WorkerId, Member> members_;  // those that have not entered
  int busy_ = 0, waiting_ = 0;       // numbers of these
  Duration patience_{};
  Time began_{};
  Time last_sign_{};  // of progress
};

}  // namespace elasticrun::rendezvous
