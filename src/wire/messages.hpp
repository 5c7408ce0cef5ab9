// Every message of elasticrun: a declared struct is the wire format, and the very type the cores
// consume. There is no second set of types, and no codec is written by hand.
//
// Two kinds of traffic share a connection. *Orders* (to the agent) and *reports* (from it) are read
// by the agent. *Worker messages* run between the controller and a worker's library; the agent
// relays them by the worker's id in the frame's header (frame.hpp) and does not read them.
//
// Rules: times are nanoseconds of the sender's own clock differences; unknown members are ignored
// and missing ones keep their default, so a library may be older than its agent.
#pragma once

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.hpp"
#include "wire/greeting.hpp"

namespace elasticrun::wire {

// ---------------------------------------------------------------- what several messages carry

// How a world splits its global batch. Shares follow by arithmetic (worker/core/shares.hpp).
struct BatchPlan {
  std::int64_t global_batch = 0;  // samples per step over all workers; 0: the program decides
  std::int64_t micro_batch = 0;   // most samples one compute call may get; 0: no limit
  std::vector<double> weights;    // of the shares, per rank; empty: all equal
  // Rank that computes nothing, so that the state outlives a step that may kill the others, and
  // that tells whose samples are which; -1: there is none.
  std::int32_t keeper = -1;
  double lr_factor = 1;         // what the program is told to multiply its rate with
  std::int64_t noise_base = 0;  // the base batch, where noise is measured; 0: it is not
  bool adascale = false;        // the factor is AdaScale's gain instead, from that noise
};

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
};

// What the program asked `train` for.
struct TrainSpec {
  std::int64_t call = 0;     // 1, 2, ...: which call of train
  std::int64_t samples = 0;  // in one epoch
  std::int64_t epochs = 0;
  std::int64_t batch = 0;       // samples one worker computes efficiently; 0: not said
  std::int64_t base_batch = 0;  // batch the learning rate was tuned for; 0: not said
  std::uint64_t state_bytes = 0;
  std::uint64_t state_layout = 0;  // hash of names, types and sizes: must agree over the world
};

// ---------------------------------------------------------------- controller to worker

// Form the group of this world in the background; the present world goes on.
struct Prepare {
  World world;
  std::string secret = {};      // of this world: by it its members know each other
  std::int64_t connect_ms = 0;  // longest wait for the connections between them; 0: not said
};
// What ranks of a generation published: those that this one needs.
struct Gathered {
  Generation generation;
  std::vector<std::string> values;
  std::vector<std::int32_t> ranks = {};  // whose these are, ascending; empty: of all, in order
};
// Enter: at once (no world runs), or when all members have agreed inside a step's reduction.
struct Go {
  Generation generation;
  bool at_once = false;
};
// Forget a prepared world; the present one goes on. Never sent after Go.
struct Cancel {
  Generation generation;
};
// Kill every group up to this generation, answer with Answer.
struct Abort {
  Generation generation;
  std::string reason;
};
// Every member has committed the last step of this call of train: it may return.
struct Release {
  std::int64_t call = 0;
};
// Out of the world for good: say goodbye and end.
struct Dismiss {
  std::string reason;
};
// Of the agent: from then on, by the clock that goes on while the machine sleeps (CLOCK_BOOTTIME),
// this worker may be counted dead; it may not take a step any more.
struct Lease {
  std::int64_t ends_ns = 0;
};

// ---------------------------------------------------------------- worker to controller

// The library is there.
struct Join {
  std::uint32_t protocol = 0;
  std::string version;
};
// In `train`, ready to become a member.
struct Ready {
  TrainSpec train;
};
// This rank's addresses for the group of that generation.
struct Publish {
  Generation generation;
  std::string value;
  std::vector<std::int32_t> needs = {};  // ranks whose values it must have; empty: all
};
struct Prepared {
  Generation generation;
  std::string way;             // what carries its group and how that was formed; of leavers: empty
  std::int32_t strangers = 0;  // who tried to take a peer's place, and were turned away
};
// What a worker has against another one of the world that it is in or is about to enter.
struct Complaint {
  WorkerId about;        // itself: the trouble is its own (no memory, no descriptors)
  bool hung_up = false;  // that one closed the connection, maybe because of trouble of its own
  bool waits = false;    // it was waited for, and nothing worse is known
  std::string reason;    // with its address and the system's error, for a person
};
struct PrepareFailed {
  Generation generation;
  std::string reason;
  std::vector<Complaint> complaints = {};
};
// The answer to Abort: the gate is closed, nothing of any generation up to that one commits any
// more.
struct Answer {
  Generation generation;
  Step committed = no_state;
  std::vector<Complaint> complaints = {};  // whom it waited for at that moment
};
// In the world of this generation, state complete, about to compute its next step.
struct Entered {
  Generation generation;
  Step step;  // last committed
  std::int64_t idle_ns =
      -1;  // end of last step of the old world to start of first compute; -1: newcomer
  std::int64_t transfer_ns = 0;
  std::uint64_t transfer_bytes = 0;
};
// The first step of a generation is committed on this worker.
struct Committed {
  Generation generation;
  Step step;
};
// A collective of this generation failed here; probably somebody died.
struct Broken {
  Generation generation;
  std::string reason;
  std::vector<Complaint> complaints = {};
};
// How noisy the gradients are (worker/core/noise_scale.hpp).
struct Noise {
  double square = 0;       // |G|^2
  double variance = 0;     // of the gradient of one sample
  std::int64_t steps = 0;  // measured over; 0: nothing is known yet
  bool biased = false;
  double scale_invariant_steps = 0;  // how many steps of the base batch training is worth by now
};
// Sent once an interval by each worker: a throughput sample and a sign of life.
struct Sample {
  Generation generation;
  Step step;                         // last committed
  std::int64_t steps = 0;            // committed since the last sample; 0: only a sign of life
  std::int64_t samples = 0;          // of this worker, in those steps
  std::int64_t wall_ns = 0;          // of those steps
  std::int64_t compute_ns = 0;       // of it, inside the program's compute
  std::int64_t reduce_ns = 0;        // of it, inside collectives
  std::int64_t waiting_ns = 0;       // since the thread entered the phase below
  std::string phase;                 // "compute", "reduce", "apply", "epoch", "transfer", "idle"
  std::uint64_t transfer_bytes = 0;  // moved in the transfer of the state that it is in
  std::vector<Noise> noise;          // the newest, of rank 0 where it is measured; else empty
  bool lost_link = false;            // in a reduction: to one of its peers nothing arrives
};
// Of the keeper of the state, before a step that may kill: who computes which samples.
struct StepSamples {
  Generation generation;
  std::int64_t epoch = 0;
  std::vector<std::string> by_rank;  // "17 4 301 and 29 more"
};
// The members' registered state differs, which all have seen in the same step.
struct Diverged {
  Generation generation;
  Step step = no_state;            // last committed
  std::vector<WorkerId> odd = {};  // who differs from more than half; empty: no half agrees
  std::string where;               // "bytes 0 to 99 of 'weights'"
  bool mixed = false;  // machines of several kinds, where last bits differ: nothing was done
};
// The samples of this call of train are used up; the state stays as it is until Release.
struct Done {
  std::int64_t call = 0;
  Step step;
};
// The program leaves by itself.
struct Leave {
  std::string reason;
  Step step = no_state;  // last committed
};

// ---------------------------------------------------------------- orders: controller to agent

struct StartWorker {
  WorkerId worker;
  std::int32_t slot = 0;
  std::vector<std::string> argv;
  std::vector<std::string> env;  // NAME=VALUE, complete
  std::string cwd;
  std::string bundle = {};  // the program for hosts that lack it, by its hash; empty: there is none
  std::int64_t bundle_bytes = 0;
};
// Signal its group, and kill it and its descendants when it is still there after the grace time.
struct StopWorker {
  WorkerId worker;
  std::int32_t signal = 15;
  std::int64_t grace_ns = 0;
};
struct SignalWorker {
  WorkerId worker;
  std::int32_t signal = 0;
};
// A sign of life. The agent sends one with what its own clock says, the controller sends it back,
// and the lease runs anew from that time: a heartbeat that was long under way prolongs nothing.
struct Heartbeat {
  Term term;
  std::int64_t clock_ns = 0;
  std::uint64_t received = 0;  // counted frames of the other side, which need not be kept any more
};
// Our reader is slower than your workers print: let them wait, or no more.
struct HoldOutput {
  bool hold = false;
};
// Stop what is left and end.
struct Shutdown {
  std::int64_t grace_ns = 0;
};
// Some bytes of the program that is copied, one file after the other; bulk. Each file has at least
// one part, and the parts of a file follow each other.
struct BundlePart {
  std::string bundle;
  std::string file;  // a name without folders
  bool executable = false;
  bool last = false;  // nothing follows: the bundle is whole
  std::string bytes;
  std::string trouble;  // not empty: nothing follows because of this
};

// ---------------------------------------------------------------- reports: agent to controller

struct WorkerStarted {
  WorkerId worker;
  std::int32_t pid = 0;
};
// It never ran: code is 126 or 127 as a shell would say, or 121.
struct StartFailed {
  WorkerId worker;
  std::int32_t code = 0;
  std::string reason;
};
struct WorkerExited {
  WorkerId worker;
  std::int32_t code = 0;
  std::int32_t signal = 0;
  std::string host_ends;  // why its host ended it, which is no failure of the worker; mostly empty
};
// Whole lines of one worker's output, newline included; bulk, never ahead of control.
struct Output {
  WorkerId worker;
  std::int32_t stream = 1;
  std::string text;
};
// Send that bundle: as much of it as makes a window beyond what this host has put on its disk.
struct BundleWanted {
  std::string bundle;
  std::int64_t taken = 0;  // bytes; 0: from the beginning
  bool resumes = false;    // from there on, over another connection; what was under way is lost
};
// The agent ends, for this reason; it is the last that is heard of it.
struct Goodbye {
  std::string reason;
};
// A GPU there is of no use before somebody has done something about it. Its slot goes with it.
struct GpuLost {
  std::int32_t slot = 0;
  std::string gpu;       // name and place, for a person
  std::int32_t xid = 0;  // the driver's number for the trouble; 0: none was seen
  std::string reason;    // with what to try
};

using ToWorker = std::variant<Prepare, Gathered, Go, Cancel, Abort, Release, Dismiss, Lease>;
using FromWorker = std::variant<Join, Ready, Publish, Prepared, PrepareFailed, Answer, Entered,
                                Committed, Broken, Sample, StepSamples, Diverged, Done, Leave>;
using ToAgent = std::variant<StartWorker, StopWorker, SignalWorker, Heartbeat, Shutdown, HoldOutput,
                             BundlePart>;
using FromAgent = std::variant<WorkerStarted, StartFailed, WorkerExited, Output, Heartbeat,
                               BundleWanted, GpuLost, Goodbye>;

// ---------------------------------------------------------------- descriptions (the wire names)

BOOST_DESCRIBE_STRUCT(BatchPlan, (),
                      (global_batch, micro_batch, weights, keeper, lr_factor, noise_base, adascale))
BOOST_DESCRIBE_STRUCT(Member, (), (worker, host, slot, holds_state))
BOOST_DESCRIBE_STRUCT(World, (), (generation, members, plan, reason))
BOOST_DESCRIBE_STRUCT(TrainSpec, (),
                      (call, samples, epochs, batch, base_batch, state_bytes, state_layout))
BOOST_DESCRIBE_STRUCT(Prepare, (), (world, secret, connect_ms))
BOOST_DESCRIBE_STRUCT(Gathered, (), (generation, values, ranks))
BOOST_DESCRIBE_STRUCT(Go, (), (generation, at_once))
BOOST_DESCRIBE_STRUCT(Cancel, (), (generation))
BOOST_DESCRIBE_STRUCT(Abort, (), (generation, reason))
BOOST_DESCRIBE_STRUCT(Release, (), (call))
BOOST_DESCRIBE_STRUCT(Dismiss, (), (reason))
BOOST_DESCRIBE_STRUCT(Lease, (), (ends_ns))
BOOST_DESCRIBE_STRUCT(Join, (), (protocol, version))
BOOST_DESCRIBE_STRUCT(Ready, (), (train))
BOOST_DESCRIBE_STRUCT(Publish, (), (generation, value, needs))
BOOST_DESCRIBE_STRUCT(Prepared, (), (generation, way, strangers))
BOOST_DESCRIBE_STRUCT(Complaint, (), (about, hung_up, waits, reason))
BOOST_DESCRIBE_STRUCT(PrepareFailed, (), (generation, reason, complaints))
BOOST_DESCRIBE_STRUCT(Answer, (), (generation, committed, complaints))
BOOST_DESCRIBE_STRUCT(Entered, (), (generation, step, idle_ns, transfer_ns, transfer_bytes))
BOOST_DESCRIBE_STRUCT(Committed, (), (generation, step))
BOOST_DESCRIBE_STRUCT(Broken, (), (generation, reason, complaints))
BOOST_DESCRIBE_STRUCT(Noise, (), (square, variance, steps, biased, scale_invariant_steps))
BOOST_DESCRIBE_STRUCT(Sample, (),
                      (generation, step, steps, samples, wall_ns, compute_ns, reduce_ns, waiting_ns,
                       phase, transfer_bytes, noise, lost_link))
BOOST_DESCRIBE_STRUCT(StepSamples, (), (generation, epoch, by_rank))
BOOST_DESCRIBE_STRUCT(Diverged, (), (generation, step, odd, where, mixed))
BOOST_DESCRIBE_STRUCT(Done, (), (call, step))
BOOST_DESCRIBE_STRUCT(Leave, (), (reason, step))
BOOST_DESCRIBE_STRUCT(StartWorker, (), (worker, slot, argv, env, cwd, bundle, bundle_bytes))
BOOST_DESCRIBE_STRUCT(StopWorker, (), (worker, signal, grace_ns))
BOOST_DESCRIBE_STRUCT(SignalWorker, (), (worker, signal))
BOOST_DESCRIBE_STRUCT(Heartbeat, (), (term, clock_ns, received))
BOOST_DESCRIBE_STRUCT(HoldOutput, (), (hold))
BOOST_DESCRIBE_STRUCT(Shutdown, (), (grace_ns))
BOOST_DESCRIBE_STRUCT(BundlePart, (), (bundle, file, executable, last, bytes, trouble))
BOOST_DESCRIBE_STRUCT(WorkerStarted, (), (worker, pid))
BOOST_DESCRIBE_STRUCT(StartFailed, (), (worker, code, reason))
BOOST_DESCRIBE_STRUCT(WorkerExited, (), (worker, code, signal, host_ends))
BOOST_DESCRIBE_STRUCT(Output, (), (worker, stream, text))
BOOST_DESCRIBE_STRUCT(BundleWanted, (), (bundle, taken, resumes))
BOOST_DESCRIBE_STRUCT(Goodbye, (), (reason))
BOOST_DESCRIBE_STRUCT(GpuLost, (), (slot, gpu, xid, reason))

}  // namespace elasticrun::wire
