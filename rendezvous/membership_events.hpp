// What goes into Membership and what comes out of it.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "wire/messages.hpp"

namespace elasticrun::rendezvous {

// ---------------------------------------------------------------- events

struct WorkerUp {
  WorkerId worker;
  HostId host;
  std::int32_t slot = 0;
};
// The worker has exited, was fenced, or was on a host that is lost. From `dead_by` on it certainly
// takes no more steps. never: not known yet; a second event then brings the time.
struct WorkerGone {
  WorkerId worker;
  std::string reason;
  Time dead_by{};
};
struct WorkerMessage {
  WorkerId from;
  wire::FromWorker message;
};
// One requested change of the world. If none is running, one forms from the workers that are there.
// A change that names no workers gives the same members another plan.
struct Change {
  ChangeId id;
  std::vector<WorkerId> add;     // must be ready; for the first world: in rank order
  std::vector<WorkerId> remove;  // must be members
  std::string reason;
};
// The size of a world after a forced change, and the workers that may fill it up. Holds until the
// next Wanted.
struct Wanted {
  int size = 0;                    // at most this many workers, unless more survive
  int minimum = 1;                 // with fewer workers no world forms
  std::vector<WorkerId> reserves;  // in order of use; not members; ignored while not ready
};
// A reduction of this generation has taken too long, and no single member is known to be at fault.
struct Stuck {
  WorkerId worker;  // one that waits in the reduction
  Generation generation;
  std::string reason;
};
// The answer to PlanWanted: how that world divides the samples of a step among its members.
struct PlanMade {
  Generation generation;
  BatchPlan plan;
};
// While no worker holds the state, a world begins with this save of it, not with fresh weights;
// after StateLost one forms at once of the workers that are there. Empty: none yet, or a newer one
// comes.
struct Restore {
  std::string from;  // its folder
};
// Training is over for all workers; the job needs none of them.
struct Dissolve {
  std::string reason;
};
// The controller itself stood still for this long, so the deadlines of workers are extended by it.
struct StoodStill {
  Duration time{};
};
struct Tick {};
using Event = std::variant<WorkerUp, WorkerGone, WorkerMessage, Change, Wanted, Stuck, PlanMade,
                           Restore, Dissolve, StoodStill, Tick>;

// ---------------------------------------------------------------- what comes out

// One message for one or more workers.
struct ToMembers {
  std::vector<WorkerId> to;
  wire::ToWorker message;
};
// Order to kill a worker that did not answer in time, and to report it gone afterwards.
struct Fence {
  WorkerId worker;
  std::string reason;
};
// A newcomer that kept a world from being formed or entered. It stays ready.
struct LeftOut {
  WorkerId worker;
  std::string reason;  // names the link
};
struct BecameReady {
  WorkerId worker;
};
// A world of these members, in rank order, is about to be prepared; it waits for PlanMade.
struct PlanWanted {
  Generation generation;
  std::vector<wire::Member> members;
};
struct WorldFormed {
  wire::World world;
  bool planned = false;
  bool replanned = false;            // the same members as before, with a global batch now
  StepId step;                       // last committed: training continues from it
  std::int64_t idle_ns = -1;         // longest among the survivors; -1: there were none
  std::int64_t transfer_ns = 0;      // longest among the members
  std::uint64_t transfer_bytes = 0;  // most among the members
  Duration prepare{};                // time from Prepare to Go
  std::string formation;             // text: what carries the group and how it was formed
  int rejected = 0;  // connections that tried to take a member's place while the group formed
};
struct ChangeEnded {
  // overtaken: a loss in the world ended the change, which may be tried again.
  enum class How { done, refused, overtaken };
  ChangeId id;
  How how = How::done;
  std::string reason;  // why it was not done; empty when it was
};
// A world has stepped for the first time.
struct WorldCommitted {
  Generation generation;
  StepId step;
};
// They have left by decision, and their state is not needed: the world without them has stepped or,
// after a loss, is being formed.
struct Dismissed {
  std::vector<WorkerId> workers;
};
// All members used up the samples of this call of train. They still wait; what they are sent now
// comes before their Release, which follows.
struct Trained {
  std::int64_t call = 0;
  StepId step;
};
struct WorkerLeft {
  WorkerId worker;
  std::string reason;
  bool in_call = true;  // of train; false: between two calls
};
// The group is being torn down for this reason.
struct WorldBroken {
  Generation generation;
  std::string reason;
};
// No world can form: fewer workers than the minimum are here. Changes that add workers are welcome.
struct BelowMinimum {
  int have = 0;
  int need = 0;
};
// No worker holds the state, and there is no save of it. Repeated with later events.
struct StateLost {
  std::string reason;
  bool all_left = false;  // its members have left by themselves, one after the other; saves or not
};
using Action = std::variant<ToMembers, Fence, LeftOut, BecameReady, PlanWanted, WorldFormed,
                            ChangeEnded, WorldCommitted, Dismissed, Trained, WorkerLeft,
                            WorldBroken, BelowMinimum, StateLost>;

}  // namespace elasticrun::rendezvous
