// Whether the transfer of the state to the members of a new world stands still.
//
// Its time runs from the first member that is in the transfer, and not while any other one is in a
// step or in code of the program (the end of an epoch, a loop of its own): that is waited for by
// others. Every byte that moves begins it anew, and it grows with the size of the state, which has
// to be hashed and copied as well. A limit for the whole transfer would have to know the network.
//
// A worker that trains in no world, and says that it is in a reduction or in a transfer that began
// before this one, is stuck: its training thread hangs in a group that was aborted, in a driver or
// in the kernel, and will not come into this world either. Pure.
#pragma once

#include <vector>

#include "base/id_map.hpp"
#include "base/ids.hpp"
#include "base/time.hpp"
#include "wire/messages.hpp"

namespace elasticrun::rendezvous {

class TransferWatch {
 public:
  // The members of the new world were told to enter it. `patience`: at most so long without a byte,
  // for a state of no size. `training`: the members of the present world, where that goes on until
  // they enter.
  void begin(const std::vector<wire::Member>& members, std::uint64_t state_bytes, Duration patience,
             const std::vector<WorkerId>& training, Time now);
  void sample(WorkerId worker, const wire::Sample& sample, Time now);
  // In the new world, with the state: its part is done.
  void entered(WorkerId worker, Time now);
  void end();
  // The controller stood still for that time.
  void stood_still(Duration time) { last_sign_ += time; }

  // Then it has stood still for too long; never: its time does not run.
  Time deadline() const;
  // Those that will not come, as far as is known.
  std::vector<WorkerId> stuck() const;

 private:
  struct Member {
    bool busy = true;     // in the program, as far as it is known
    bool trains = false;  // in the present world
    bool moving = false;
    bool stuck = false;  // in an earlier group
    std::uint64_t bytes = 0;
    bool waits() const { return moving || stuck; }
  };
  void count(const Member& member, int by);

  IdMap<WorkerId, Member> members_;  // those that have not entered
  int busy_ = 0, waiting_ = 0;       // of them
  Duration patience_{};
  Time began_{};
  Time last_sign_{};  // of progress
};

}  // namespace elasticrun::rendezvous
