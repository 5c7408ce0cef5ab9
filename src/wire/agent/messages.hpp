// What the controller and an agent say to each other about the agent itself: orders and reports.
// As in wire/messages.hpp, a declared struct is the wire format, times are durations in
// nanoseconds, and a missing member keeps its default.
#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.hpp"

namespace elasticrun::wire::agent {

// Bytes of any kind. They are no part of their message's JSON text but follow it (codec.hpp), so
// that a program's output and its files are neither escaped nor parsed. A message has at most one
// such member.
struct Bytes {
  std::string value;
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
  std::int32_t after_ms = 0;  // the program begins this much later, or as its agent has learned
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
  std::string file;  // a path of plain names below the bundle's folder
  bool executable = false;
  bool last = false;  // nothing follows: the bundle is complete
  Bytes bytes;
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
// The worker's process is dying in this way, and will not do anything more; WorkerExited follows
// when all of it is gone. Not sent for each one that ends.
struct WorkerDies {
  WorkerId worker;
  std::int32_t code = 0;
  std::int32_t signal = 0;
  std::string error;  // as in WorkerExited
};
struct WorkerExited {
  WorkerId worker;
  std::int32_t code = 0;
  std::int32_t signal = 0;
  std::string host_ends;  // mostly empty; else why the host itself ends: not the worker's failure
  std::string error;      // what the worker wrote about its failure; empty: nothing
  std::int64_t error_ns = 0;    // when, by the host's clock, since 1970
  std::uint16_t free_port = 0;  // an unused port of the host, for the program's next start
};
// Whole lines of one worker's output, with newlines. Sent as bulk, never ahead of control frames.
struct Output {
  WorkerId worker;
  std::int32_t stream = 1;
  Bytes text;
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

// What a worker of a program without the library says about its progress, since its last report.
struct Progress {
  WorkerId worker;
  std::int64_t steps = 0;
  std::int64_t samples = 0;  // of this worker in those steps
  std::int64_t wall_ns = 0;  // time of those steps
};
// The host will soon go away, for a reason that lies outside of the job; its workers still run.
struct HostLeaves {
  std::string reason;
};

// The agent got this signal. `of_job`: as all processes of its step of a batch system did, so the
// job is to stop. Otherwise the host is to end, unless the job stops; the answer then is Shutdown.
struct StopAsked {
  std::int32_t signal = 0;
  bool of_job = false;
};

using ToAgent = std::variant<StartWorker, StopWorker, SignalWorker, Heartbeat, Shutdown, HoldOutput,
                             BundlePart>;
using FromAgent =
    std::variant<WorkerStarted, StartFailed, WorkerDies, WorkerExited, Output, Heartbeat,
                 BundleWanted, GpuLost, Progress, HostLeaves, StopAsked, Goodbye>;

// ---------------------------------------------------------------- descriptions (the wire names)

BOOST_DESCRIBE_STRUCT(StartWorker, (),
                      (worker, slot, argv, env, cwd, bundle, bundle_bytes, after_ms))
BOOST_DESCRIBE_STRUCT(StopWorker, (), (worker, signal, grace_ns))
BOOST_DESCRIBE_STRUCT(SignalWorker, (), (worker, signal))
BOOST_DESCRIBE_STRUCT(Heartbeat, (), (term, clock_ns, received))
BOOST_DESCRIBE_STRUCT(HoldOutput, (), (hold))
BOOST_DESCRIBE_STRUCT(Shutdown, (), (grace_ns))
BOOST_DESCRIBE_STRUCT(BundlePart, (), (bundle, file, executable, last, bytes, trouble))
BOOST_DESCRIBE_STRUCT(WorkerStarted, (), (worker, pid))
BOOST_DESCRIBE_STRUCT(StartFailed, (), (worker, code, reason))
BOOST_DESCRIBE_STRUCT(WorkerDies, (), (worker, code, signal, error))
BOOST_DESCRIBE_STRUCT(WorkerExited, (),
                      (worker, code, signal, host_ends, error, error_ns, free_port))
BOOST_DESCRIBE_STRUCT(Output, (), (worker, stream, text))
BOOST_DESCRIBE_STRUCT(BundleWanted, (), (bundle, taken, resumes))
BOOST_DESCRIBE_STRUCT(Goodbye, (), (reason))
BOOST_DESCRIBE_STRUCT(GpuLost, (), (slot, gpu, xid, reason))
BOOST_DESCRIBE_STRUCT(Progress, (), (worker, steps, samples, wall_ns))
BOOST_DESCRIBE_STRUCT(HostLeaves, (), (reason))
BOOST_DESCRIBE_STRUCT(StopAsked, (), (signal, of_job))

}  // namespace elasticrun::wire::agent
