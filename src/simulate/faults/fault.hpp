// What goes wrong in a simulated run, and what people ask for: a list that a seed draws before
// anything moves, and that a person can read, shorten and keep (scene_text.hpp).
//
// A fault names a place (a host, a slot) and not a process, and it means the first living one from
// there on: so it says the same when others before it are taken away. What each does stands in
// faults.cpp.
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
  hang,       // its thread there never goes on
  slow,       // `number` times, from now on
  freeze,     // stopped for `time`, as by a debugger
  lose_gpu,
  spoil,  // the state does not arrive there whole, `number` times
  // ---- a host
  cut,           // its control connection carries nothing for `time`
  reset,         // its control connection; it dials again after `time`
  reset_all,     // as reset, of every host
  freeze_agent,  // for `time`, while its workers run
  freeze_host,   // for `time`, with its workers
  kill_agent,
  power,
  join,  // a host that nobody asked for comes up
  // ---- the path from `host` to host `number`, for `time`
  link_drops,  // both ways
  link_small,  // both ways; small packets pass
  link_one_way,
  // ---- the controller and people
  stand_still,  // for `time`
  scale,        // a person wants `number` workers
  edit,         // a person leaves the slots whose bits `number` has in the host file
  leave,        // the program leaves by itself
  // One worker is wanted, and its host is cut off at that moment; `number` 1: its agent is frozen
  // instead, 2: it is killed itself.
  shrink_and_cut,
};

// Where in its work a worker is struck; now: wherever it is.
enum class Point { now, compute, reduce, apply, epoch, transfer, forming };

enum class Who { anybody, member, newcomer, first_rank };

struct Fault {
  Duration at{};  // from the start
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
  Duration first{};  // not before
  Duration every{};  // mean time between two
  Duration until{};
  bool people = true;           // change size and hosts, too
  bool only_newcomers = false;  // are struck
};
std::vector<Fault> draw_faults(const FaultChoice& choice, Rng& rng);

// "312.5ms hang host=2 slot=1 in=transfer"
std::string fault_text(const Fault& fault);
Result<Fault> parse_fault(const std::string& line);

}  // namespace elasticrun::simulate::faults
