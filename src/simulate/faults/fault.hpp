// The faults of a simulated run and the requests of its users: a list that is drawn from a seed
// before the run starts, and that a developer can read, shorten and keep (scene_text.hpp).
//
// A fault names a place (a host, a slot) instead of a process, and strikes the first living process
// from that place on: so it keeps its meaning when earlier faults are removed from the list.
// faults.cpp carries the faults out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/rng.hpp"
#include "base/time.hpp"

namespace elasticrun::simulate::faults {

enum class FaultKind {
  // ---- a worker
  kill,
  fail,       // ends with code 1
  exit_zero,  // in the middle of training
  hang,       // the thread at point `in` never continues
  slow,       // `number` times slower from now on
  freeze,     // the process is stopped for `time`, as by a debugger
  lose_gpu,
  spoil,  // the state transfer to the worker fails, `number` times
  // ---- a host
  cut,           // its control connection carries nothing for `time`
  reset,         // its control connection is reset; the agent dials again after `time`
  reset_all,     // reset of every host, each after its own random part of `time`
  freeze_agent,  // the agent is frozen for `time` while its workers run
  freeze_host,   // the agent and its workers are frozen for `time`
  kill_agent,
  power,   // the host loses power
  notice,  // the host says that it will go
  join,    // a host that the job did not ask for comes up
  // ---- the path from `host` to host `number`, for `time`
  link_drops,  // loses everything, in both directions
  link_small,  // loses all but small packets, in both directions
  link_one_way,
  // ---- the controller and users
  stand_still,  // the controller stops for `time`
  scale,        // a user asks for `number` workers
  edit,         // a user edits the host file, which keeps the slots whose bits are set in `number`
  leave,        // the program leaves by itself
  // A user asks for one worker, and the host of that worker is cut off at that moment; `number` 1:
  // its agent is frozen instead, 2: the worker itself is killed.
  shrink_and_cut,
};

// The point in its work at which a worker is struck; now: wherever it is.
enum class Point { now, compute, reduce, apply, epoch, transfer, forming };

enum class Who { anybody, member, newcomer, first_rank };

struct Fault {
  Duration at{};  // since the start
  FaultKind kind{};
  int host = 1;
  int slot = 0;
  Who who = Who::anybody;
  Point in = Point::now;
  Duration time{};
  int number = 0;
};

struct FaultChoice {
  int hosts = 1;
  int slots_per_host = 1;
  Duration first{};  // no fault before this time
  Duration every{};  // mean time between two faults
  Duration until{};
  bool people = true;           // users also change the size and the hosts
  bool only_newcomers = false;  // only newcomers are struck
  bool only_leavers = false;    // workers leave by themselves, and nothing else happens
};
std::vector<Fault> draw_faults(const FaultChoice& choice, Rng& rng);

// "312.5ms hang host=2 slot=1 in=transfer"
std::string fault_text(const Fault& fault);
Result<Fault> parse_fault(const std::string& line);

}  // namespace elasticrun::simulate::faults
