// The worker messages, which run between the controller and a worker's library. A declared struct
// is the wire format, and also the type that the cores consume. There is no second set of types,
// and no codec is written by hand.
//
// Two kinds of traffic share a connection. *Orders* (to the agent) and *reports* (from it) are
// for the agent itself (wire/agent/messages.hpp). Worker messages only pass
// through the agent, which does not read them: it finds the worker by the id in the frame's header
// (frame.hpp).
//
// Rules: times are durations in nanoseconds, unless a member says otherwise. Unknown
// members are ignored and missing ones keep their default, so a library may be older than its
// agent.
#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.hpp"
#include "base/plan.hpp"
#include "wire/saved/manifest.hpp"

namespace elasticrun::wire {

// ---------------------------------------------------------------- what several messages carry

struct Member {
  WorkerId worker;
  HostId host;
  std::int32_t slot = 0;
  bool holds_state = false;  // sends the state at the switch; the others receive it
};

// A world as it is prepared: members in rank order.
struct World {
  Generation generation;
  std::vector<Member> members;
  BatchPlan plan;
  std::string reason;
  // Folder of the save from which its members take the state, since nobody holds it; empty: none.
  std::string restore = {};
};

// The arguments of the program's call of `train`.
struct TrainSpec {
  std::int64_t call = 0;     // number of this call of train: 1, 2, ...
  std::int64_t samples = 0;  // in one epoch
  std::int64_t epochs = 0;
  std::int64_t batch = 0;       // samples one worker computes efficiently; 0: not given
  std::int64_t base_batch = 0;  // batch the learning rate was tuned for; 0: not given
  std::uint64_t state_bytes = 0;
  std::uint64_t state_layout = 0;  // hash of names, types and sizes: the same on all members
  std::string save_trouble = {};   // why the folder of --save cannot be used here; empty: it can
};

// ---------------------------------------------------------------- controller to worker

// Form the group of this world in the background, while the present world goes on.
struct Prepare {
  World world;
  std::string secret = {};      // of this world: its members authenticate each other with it
  std::int64_t connect_ms = 0;  // longest wait for the connections between them; 0: not given
};
// The values that other ranks of this generation published and this rank needs.
struct Gathered {
  Generation generation;
  std::vector<std::string> values;
  std::vector<std::int32_t> ranks = {};  // publishers of the values, ascending; empty: all ranks
};
// Enter the world: at once (no world runs), or when the members have agreed inside a reduction.
struct Go {
  Generation generation;
  bool at_once = false;
};
// Forget a prepared world; the present one goes on. After Go it comes only where training has ended
// before any member entered the new world.
struct Cancel {
  Generation generation;
};
// Abort every group up to this generation, and reply with Answer. `after` and `collectives` are the
// place at which a member has left: the last committed step, and the collectives since then. A
// worker on its way to this place reaches it first. Each worker that has answered keeps its groups
// open for the others, until the same Abort without `after` follows.
struct Abort {
  Generation generation;
  std::string reason;
  StepId after = no_state;
  std::int64_t collectives = 0;
};
// Save the state of the next step after which all members of the world agree to it (votes.hpp):
// each member writes its part into this folder and replies with Saved.
struct Save {
  std::int64_t number = 0;  // of this save; never used again for another one
  std::string folder = {};
  bool stop = false;  // make no step after it: the job ends
  // There is no world: this worker writes all of the state that it holds, if it holds it still.
  bool alone = false;
};
// Every member has committed the last step of this call of train, so the call may return.
struct Release {
  std::int64_t call = 0;
};
// The worker is out of the world for good and should end.
struct Dismiss {
  std::string reason;
};
// Sent by the agent. From this time on the worker may count as dead, so it must make no step. The
// clock is the one that goes on while the machine sleeps (CLOCK_BOOTTIME).
struct Lease {
  std::int64_t ends_ns = 0;  // a point of that clock, not a difference
};

// ---------------------------------------------------------------- worker to controller

// The library has started.
struct Join {
  std::uint32_t protocol = 0;
  std::string version;
};
// The worker is in `train` and ready to become a member.
struct Ready {
  TrainSpec train;
};
// This rank's addresses for the group of this generation.
struct Publish {
  Generation generation;
  std::string value;
  std::vector<std::int32_t> needs = {};  // ranks whose values it must have; empty: all
};
struct Prepared {
  Generation generation;
  std::string formation;  // text: what carries the group and how it was formed; empty from leavers
  std::int32_t rejected = 0;  // refused connections that tried to take a peer's place
};
// One worker's complaint about another worker of the world that it is in or is about to enter.
struct Complaint {
  WorkerId about;        // the sender itself: the problem is its own (no memory, no descriptors)
  bool hung_up = false;  // that worker closed the connection, maybe because of its own problem
  bool waits = false;    // the sender waited for that worker, and nothing worse is known
  std::string reason;    // with that worker's address and the system's error, for the user
};
struct PrepareFailed {
  Generation generation;
  std::string reason;
  std::vector<Complaint> complaints = {};
};
// The answer to Abort: from now on the worker commits no step of any generation up to this one.
struct Answer {
  Generation generation;
  StepId committed = no_state;
  std::vector<Complaint> complaints = {};  // the workers that it was waiting for at that moment
};
// The worker is in the world of this generation, has its whole state, and begins its next step.
struct Entered {
  Generation generation;
  StepId step;  // last committed
  std::int64_t idle_ns =
      -1;  // from the end of the old world's last step to the first compute; -1: newcomer
  std::int64_t transfer_ns = 0;
  std::uint64_t transfer_bytes = 0;
};
// The first step of a generation is committed on this worker.
struct Committed {
  Generation generation;
  StepId step;
};
// A collective of this generation failed on this worker; probably a peer died.
struct Broken {
  Generation generation;
  std::string reason;
  std::vector<Complaint> complaints = {};
};
// A member has written its part of a save, or could not.
struct Saved {
  std::int64_t number = 0;
  Generation generation;
  StepId step;              // the save holds the state after this step
  std::int32_t rank = 0;    // of the member in that generation
  std::int32_t size = 0;    // of that generation
  std::int64_t call = 0;    // of train, from 1
  std::int64_t epoch = 0;   // of that call, from 0
  std::int64_t cursor = 0;  // number of places of the epoch that are used
  std::vector<saved::File> files = {};
  std::int64_t held_ns = 0;  // how long it held up the next step
  std::int64_t took_ns = 0;  // until its part was on the disk
  std::string error = {};    // why it could not; empty: it could
  // Hash of the arrays that its state source lists: the same on all members. 0: not given.
  std::uint64_t source_layout = 0;
};
// The save that the world of this generation begins with cannot be read on this worker.
struct Unreadable {
  Generation generation;
  std::string save;  // its folder
  std::string reason;
  bool of_reader = false;  // the system gave this worker an error; false: the save is damaged
};
// Sent once per interval by each worker: a throughput sample and a sign of life.
struct Sample {
  Generation generation;
  StepId step;                  // last committed
  std::int64_t steps = 0;       // committed since the last sample; 0: only a sign of life
  std::int64_t samples = 0;     // computed by this worker in those steps
  std::int64_t wall_ns = 0;     // duration of those steps
  std::int64_t compute_ns = 0;  // part of wall_ns inside the program's compute
  std::int64_t reduce_ns = 0;   // part of wall_ns inside collectives
  std::int64_t waiting_ns = 0;  // since the training thread entered `phase`
  std::string phase;            // "compute", "reduce", "apply", "epoch", "transfer", "save", "idle"
  std::uint64_t transfer_bytes = 0;  // of state, moved by this process so far
  std::vector<Noise> noise;          // newest value, from rank 0 if it is measured; else empty
  bool lost_link = false;            // in a reduction: the link to a peer loses what is sent
};
// Sent by the keeper of the state before a step that may kill workers: which rank computes which
// samples.
struct StepSamples {
  Generation generation;
  std::int64_t epoch = 0;
  std::vector<std::string> by_rank;  // text per rank: "17 4 301 and 29 more"
};
// The members' registered state differs. All members have seen it in the same step.
struct Diverged {
  Generation generation;
  StepId step = no_state;          // last committed
  std::vector<WorkerId> odd = {};  // those that differ from a majority; empty: no majority agrees
  std::string where;               // "bytes 0 to 99 of 'weights'"
  bool mixed = false;  // the machines are of several kinds, so last bits differ: nothing was done
};
// The samples of this call of train are used up; the state stays as it is until Release.
struct Done {
  std::int64_t call = 0;
  StepId step;
};
// The program leaves of its own accord.
struct Leave {
  std::string reason;
  StepId step = no_state;        // last committed
  std::int64_t collectives = 0;  // that the program has called since, and that are complete
};

using ToWorker = std::variant<Prepare, Gathered, Go, Cancel, Abort, Save, Release, Dismiss, Lease>;
using FromWorker =
    std::variant<Join, Ready, Publish, Prepared, PrepareFailed, Answer, Entered, Committed, Broken,
                 Saved, Unreadable, Sample, StepSamples, Diverged, Done, Leave>;

// ---------------------------------------------------------------- descriptions (the wire names)

BOOST_DESCRIBE_STRUCT(Member, (), (worker, host, slot, holds_state))
BOOST_DESCRIBE_STRUCT(World, (), (generation, members, plan, reason, restore))
BOOST_DESCRIBE_STRUCT(TrainSpec, (),
                      (call, samples, epochs, batch, base_batch, state_bytes, state_layout,
                       save_trouble))
BOOST_DESCRIBE_STRUCT(Prepare, (), (world, secret, connect_ms))
BOOST_DESCRIBE_STRUCT(Gathered, (), (generation, values, ranks))
BOOST_DESCRIBE_STRUCT(Go, (), (generation, at_once))
BOOST_DESCRIBE_STRUCT(Cancel, (), (generation))
BOOST_DESCRIBE_STRUCT(Abort, (), (generation, reason, after, collectives))
BOOST_DESCRIBE_STRUCT(Save, (), (number, folder, stop, alone))
BOOST_DESCRIBE_STRUCT(Release, (), (call))
BOOST_DESCRIBE_STRUCT(Dismiss, (), (reason))
BOOST_DESCRIBE_STRUCT(Lease, (), (ends_ns))
BOOST_DESCRIBE_STRUCT(Join, (), (protocol, version))
BOOST_DESCRIBE_STRUCT(Ready, (), (train))
BOOST_DESCRIBE_STRUCT(Publish, (), (generation, value, needs))
BOOST_DESCRIBE_STRUCT(Prepared, (), (generation, formation, rejected))
BOOST_DESCRIBE_STRUCT(Complaint, (), (about, hung_up, waits, reason))
BOOST_DESCRIBE_STRUCT(PrepareFailed, (), (generation, reason, complaints))
BOOST_DESCRIBE_STRUCT(Answer, (), (generation, committed, complaints))
BOOST_DESCRIBE_STRUCT(Entered, (), (generation, step, idle_ns, transfer_ns, transfer_bytes))
BOOST_DESCRIBE_STRUCT(Committed, (), (generation, step))
BOOST_DESCRIBE_STRUCT(Broken, (), (generation, reason, complaints))
BOOST_DESCRIBE_STRUCT(Saved, (),
                      (number, generation, step, rank, size, call, epoch, cursor, files, held_ns,
                       took_ns, error, source_layout))
BOOST_DESCRIBE_STRUCT(Unreadable, (), (generation, save, reason, of_reader))
BOOST_DESCRIBE_STRUCT(Sample, (),
                      (generation, step, steps, samples, wall_ns, compute_ns, reduce_ns, waiting_ns,
                       phase, transfer_bytes, noise, lost_link))
BOOST_DESCRIBE_STRUCT(StepSamples, (), (generation, epoch, by_rank))
BOOST_DESCRIBE_STRUCT(Diverged, (), (generation, step, odd, where, mixed))
BOOST_DESCRIBE_STRUCT(Done, (), (call, step))
BOOST_DESCRIBE_STRUCT(Leave, (), (reason, step, collectives))

}  // namespace elasticrun::wire
