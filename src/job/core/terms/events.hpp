// What the core of a job is told (JobEvent) and what it wants done (JobAction). All of it is
// values: a driver, the simulator and a scenario speak to the core in the same words.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "job/core/terms/slot.hpp"
#include "job/core/terms/source_notes.hpp"
#include "job/report/event.hpp"
#include "job/report/sink.hpp"
#include "launcher/hosts/place.hpp"
#include "wire/messages.hpp"

namespace elasticrun::job {

// ---------------------------------------------------------------- events

// The slots there are, in rank order: at the start, and when the host file has changed.
struct SlotsChanged {
  std::vector<SlotId> slots;
  std::vector<int> slots_by_host;
  std::vector<double> prices;  // of the slots, per hour; 0, or none at all: not said
  bool guessed = false;        // some hosts tell how many they have when they are up
  std::string why = "the hosts were changed";
  std::string source;  // the file or program that names others now; empty: it was another change
};
// What hosts are called, and what kinds of machines they are where somebody has said so: before
// anything else is told of them, and when that has changed.
struct HostsMet {
  struct Host {
    HostId host;
    std::string name;
    std::string type = {};  // empty: not said
  };
  std::vector<Host> hosts;
};
struct HostUp {
  HostId host;
};
struct HostDown {
  HostId host;
  std::string reason;
};
// Its control connection is lost, and it may dial again; it has.
struct HostAway {
  HostId host;
  std::string reason;
};
struct HostBack {
  HostId host;
};
struct FromHost {
  HostId host;
  wire::FromAgent report;
};
struct FromWorker {
  WorkerId worker;
  wire::FromWorker message;
};
// INT, TERM or HUP of a person or a batch system.
struct Interrupt {
  std::int32_t signal = 0;
};
// USR1, USR2: for the workers.
struct PassSignal {
  std::int32_t signal = 0;
};
// The controller itself did not run for that time: stopped, suspended, or moved to another machine.
struct StoodStill {
  Duration time{};
};
// Ctrl-Z.
struct Suspend {};
// A person wants this size.
struct Scale {
  int size = 0;
};
// What the program of --policy exec: has printed, or why that does not count.
struct Advised {
  Result<std::string> output;
};
struct Tick {};
using JobEvent =
    std::variant<SlotsChanged, HostsMet, HostsNoted, HostUp, HostDown, HostAway, HostBack, FromHost,
                 FromWorker, StoodStill, Suspend, Interrupt, PassSignal, Scale, Advised, Tick>;

// ---------------------------------------------------------------- actions

struct StartAgent {
  HostId host;
};
// It did not go by itself.
struct KillAgent {
  HostId host;
};
// A new worker, in this slot, with this place in the world that there will be if all goes well; the
// driver makes the environment from that.
struct StartWorker {
  WorkerId worker;
  SlotId slot;
  launcher::hosts::Place place;
  Generation generation;  // the newest there is
};
struct Order {
  HostId host;
  wire::ToAgent order;
};
// One message: once to each host, whose agent gives it to these workers.
struct Deliver {
  struct To {
    HostId host;
    std::vector<WorkerId> workers;
  };
  std::vector<To> to;
  wire::ToWorker message;
};
struct Record {
  report::Event event;
};
struct Say {
  report::LogLevel tone = report::LogLevel::info;
  std::string text;
};
// The rank a worker has from now on; -1: none. For labels.
struct Ranked {
  WorkerId worker;
  std::int32_t rank = -1;
};
// The program of --policy exec:, never while it has not answered.
struct Ask {
  std::string question;
};
struct Finish {
  int exit_code = 0;
  std::string last_words;
};
using JobAction = std::variant<StartAgent, KillAgent, StartWorker, Order, Deliver, Record, Say,
                               Ranked, Ask, Finish>;

// The actions of one step, in their order.
class Actions {
 public:
  void add(JobAction action) { actions_.push_back(std::move(action)); }
  void say(report::LogLevel tone, std::string text) { add(Say{tone, std::move(text)}); }
  void record(std::string name, std::vector<std::pair<std::string, report::Value>> fields) {
    add(Record{report::Event{std::move(name), std::move(fields)}});
  }
  std::vector<JobAction> take() { return std::exchange(actions_, {}); }

 private:
  std::vector<JobAction> actions_;
};

}  // namespace elasticrun::job
