// Every message of elasticrun. A declared struct is the wire format, and also the type that the
// cores consume. There is no second set of types, and no codec is written by hand.
//
// Two kinds of traffic share a connection. *Orders* (to the agent) and *reports* (from it) are for
// the agent itself. *Worker messages* run between the controller and a worker's library; the agent
// relays them by the worker's id in the frame's header (frame.hpp) and does not read them.
//
// Rules: times are durations in nanoseconds, unless a member says otherwise. Unknown
// members are ignored and missing ones keep their default, so a library may be older than its
// agent.
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

// How a world splits its global batch. Each rank computes the shares from it
// (worker/core/shares.hpp).
struct BatchPlan {
  std::int64_t global_batch = 0;  // samples per step over all workers; 0: the program decides
  std::int64_t micro_batch = 0;   // most samples one compute call may get; 0: no limit
  std::vector<double> weights;    // of the shares, per rank; empty: all equal
  // The rank that computes nothing, so that the state outlives a step that may kill the other
  // ranks, and that reports which rank computes which samples (StepSamples); -1: none.
  std::int32_t keeper = -1;
  double lr_factor = 1;         // by which the program should multiply its learning rate
  std::int64_t noise_base = 0;  // base batch for measuring the gradient noise; 0: not measured
  bool adascale = false;        // the factor is AdaScale's gain from that noise, not lr_factor
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

// The arguments of the program's call of `train`.
struct TrainSpec {
  std::int64_t call = 0;     // number of this call of train: 1, 2, ...
  std::int64_t samples = 0;  // in one epoch
  std::int64_t epochs = 0;
  std::int64_t batch = 0;       // samples one worker computes efficiently; 0: not given
  std::int64_t base_batch = 0;  // batch the learning rate was tuned for; 0: not given
  std::uint64_t state_bytes = 0;
  std::uint64_t state_layout = 0;  // hash of names, types and sizes: the same on all members
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
// Abort every group up to this generation, and reply with Answer.
struct Abort {
  Generation generation;
  std::string reason;
};
// Every member has committed the last step of this call of train, so the call may return.
struct Release {
  std::int64_t call = 0;
};
// The worker is out of the world for good and should end.
struct Dismiss {
  std::string reason;
};
// Sent by the agent. From this time on the worker may count as dead, so it must not take a step any
// more. The clock is the one that goes on while the machine sleeps (CLOCK_BOOTTIME).
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
  std::string way;  // text: what carries the group and how it was formed; empty from leavers
  std::int32_t strangers = 0;  // refused connections that tried to take a peer's place
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
  Step committed = no_state;
  std::vector<Complaint> complaints = {};  // the workers that it was waiting for at that moment
};
// The worker is in the world of this generation, has its whole state, and begins its next step.
struct Entered {
  Generation generation;
  Step step;  // last committed
  std::int64_t idle_ns =
      -1;  // from the end of the old world's last step to the first compute; -1: newcomer
  std::int64_t transfer_ns = 0;
  std::uint64_t transfer_bytes = 0;
};
// The first step of a generation is committed on this worker.
struct Committed {
  Generation generation;
  Step step;
};
// A collective of this generation failed on this worker; probably a peer died.
struct Broken {
  Generation generation;
  std::string reason;
  std::vector<Complaint> complaints = {};
};
// How noisy the gradients are (worker/core/noise_scale.hpp).
struct Noise {
  double square = 0;       // |G|^2
  double variance = 0;     // of the gradient of one sample
  std::int64_t steps = 0;  // number of steps measured; 0: nothing is known yet
  bool biased = false;     // measured from pairs of successive steps: movement counts as noise
  double scale_invariant_steps = 0;  // the training so far, in equivalent steps of the base batch
};
// Sent once per interval by each worker: a throughput sample and a sign of life.
struct Sample {
  Generation generation;
  Step step;                         // last committed
  std::int64_t steps = 0;            // committed since the last sample; 0: only a sign of life
  std::int64_t samples = 0;          // computed by this worker in those steps
  std::int64_t wall_ns = 0;          // duration of those steps
  std::int64_t compute_ns = 0;       // part of wall_ns inside the program's compute
  std::int64_t reduce_ns = 0;        // part of wall_ns inside collectives
  std::int64_t waiting_ns = 0;       // since the training thread entered `phase`
  std::string phase;                 // "compute", "reduce", "apply", "epoch", "transfer", "idle"
  std::uint64_t transfer_bytes = 0;  // of state, moved by this process so far; grows in a transfer
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
  Step step = no_state;            // last committed
  std::vector<WorkerId> odd = {};  // those that differ from a majority; empty: no majority agrees
  std::string where;               // "bytes 0 to 99 of 'weights'"
  bool mixed = false;  // the machines are of several kinds, so last bits differ: nothing was done
};
// The samples of this call of train are used up; the state stays as it is until Release.
struct Done {
  std::int64_t call = 0;
  Step step;
};
// The program leaves of its own accord.
struct Leave {
  std::string reason;
  Step step = no_state;  // last committed
};

// ---------------------------------------------------------------- orders: controller to agent

struct StartWorker {
  WorkerId worker;
  std::int32_t slot = 0;
  std::vector<std::string> argv;
  std::vector<std::string> env;  // NAME=VALUE; the agent adds facts of its host
  std::string cwd;
  std::string bundle = {};  // hash of the bundle with the program, for hosts that lack it; or empty
  std::int64_t bundle_bytes = 0;
};
// Signal the worker's process group. If the worker is still there after the grace time, kill it and
// its descendants.
struct StopWorker {
  WorkerId worker;
  std::int32_t signal = 15;
  std::int64_t grace_ns = 0;
};
struct SignalWorker {
  WorkerId worker;
  std::int32_t signal = 0;
};
// A sign of life. The agent sends one with the time of its own clock, the controller sends it back,
// and the lease is counted from that time: a heartbeat that was long under way prolongs nothing.
struct Heartbeat {
  Term term;
  std::int64_t clock_ns = 0;
  std::uint64_t received = 0;  // counted frames the sender has received: no need to keep them
};
// Flow control for output: the controller's output is read more slowly than the workers print.
struct HoldOutput {
  bool hold = false;  // true: let the workers wait; false: read on
};
// Stop the workers that are left, and end.
struct Shutdown {
  std::int64_t grace_ns = 0;
};
// Some bytes of a bundle, which is sent one file after the other, as bulk. Each file has at least
// one part, and the parts of a file follow each other.
struct BundlePart {
  std::string bundle;
  std::string file;  // a name without folders
  bool executable = false;
  bool last = false;  // nothing follows: the bundle is complete
  std::string bytes;
  std::string trouble;  // not empty: the copy failed for this reason, and nothing follows
};

// ---------------------------------------------------------------- reports: agent to controller

struct WorkerStarted {
  WorkerId worker;
  std::int32_t pid = 0;
};
// The program never ran. code: 126 or 127 as in a shell, or 121 (exit_code.hpp).
struct StartFailed {
  WorkerId worker;
  std::int32_t code = 0;
  std::string reason;
};
struct WorkerExited {
  WorkerId worker;
  std::int32_t code = 0;
  std::int32_t signal = 0;
  std::string host_ends;  // mostly empty; else why the host itself ends: not the worker's failure
};
// Whole lines of one worker's output, with newlines. Sent as bulk, never ahead of control frames.
struct Output {
  WorkerId worker;
  std::int32_t stream = 1;
  std::string text;
};
// Asks for this bundle. The controller may send up to one window beyond the bytes that the host has
// put on its disk.
struct BundleWanted {
  std::string bundle;
  std::int64_t taken = 0;  // bytes on disk, or received if `resumes`; 0: send from the beginning
  bool resumes = false;    // go on from `taken` over a new connection: bytes under way were lost
};
// The agent ends for this reason; its last report.
struct Goodbye {
  std::string reason;
};
// A GPU of the host is of no use until an operator has dealt with it. Its slot is lost with it.
struct GpuLost {
  std::int32_t slot = 0;
  std::string gpu;       // name and place, for the user
  std::int32_t xid = 0;  // the NVIDIA driver's error number (Xid); 0: none was seen
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
