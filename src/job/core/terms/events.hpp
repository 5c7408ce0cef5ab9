// The input of a job's core (JobEvent) and its output (JobAction). All of them are plain values:
// a driver, the simulator and a scenario talk to the core in the same way.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "job/core/terms/nodes.hpp"
#include "job/core/terms/slot.hpp"
#include "job/report/event.hpp"
#include "job/report/sink.hpp"
#include "launcher/hosts/place.hpp"
#include "wire/agent/messages.hpp"
#include "wire/messages.hpp"

namespace elasticrun::job {

// ---------------------------------------------------------------- events

// The present slots, in rank order: sent at the start, and when hosts or slots have changed.
struct SlotsChanged {
  std::vector<SlotId> slots;
  std::vector<int> slots_by_host;
  std::vector<double> prices;  // per slot and hour; 0, or a missing entry: not known
  bool guessed = false;        // some hosts report their slots only when they are up
  std::string why = "the hosts were changed";
  std::string source;  // the file or program that changed them; empty: another kind of change
  // Hosts that the source named before, and does not name now, or that are drained.
  std::set<HostId> dropped = {};
};
// The names of hosts, and their machine types where given: sent before any other event about these
// hosts, and again when they are given again.
struct HostsMet {
  struct Host {
    HostId host;
    std::string name;
    std::string type = {};  // empty: not given
    bool stays = false;     // this program runs there, so it is never given back
  };
  std::vector<Host> hosts;
};
// What happened to the hosts of a job or to their source, as a text for the user.
struct HostsNoted {
  bool well = false;  // a problem is over
  std::string text;
};
struct HostUp {
  HostId host;
};
struct HostDown {
  HostId host;
  std::string reason;
};
// Its control connection is lost, and it may dial again; HostBack: it has dialled again.
struct HostAway {
  HostId host;
  std::string reason;
};
struct HostBack {
  HostId host;
};
struct FromHost {
  HostId host;
  wire::agent::FromAgent report;
};
struct FromWorker {
  WorkerId worker;
  wire::FromWorker message;
};
// INT, TERM or HUP from the user or a batch system.
struct Interrupt {
  std::int32_t signal = 0;
};
// USR1 or USR2, to be passed on to the workers.
struct PassSignal {
  std::int32_t signal = 0;
};
// The controller itself did not run for that time: it was stopped or suspended, or moved to another
// machine.
struct StoodStill {
  Duration time{};
};
// Ctrl-Z (SIGTSTP).
struct Suspend {};
// The user wants this size.
struct Scale {
  int size = 0;
};
// What the program of --policy exec: has printed, or why it printed nothing of use.
struct Advised {
  Result<std::string> output;
};
// No worker needs these hosts: give them back when their agents, which were told to end, have gone.
// An action; its answer, for all of them, comes back as an event.
struct GiveBack {
  std::vector<HostId> hosts;
  std::set<HostId> with_agent;  // those of them that have one

  struct Answer {
    std::vector<HostId> hosts;
    Result<void> taken;  // or why they stay hosts of the job
  };
};
// All parts of a save are written: make it whole. An action; its answer comes back as an event.
struct SealSave {
  std::int64_t number = 0;
  wire::saved::Manifest manifest;
  std::string before;  // the newest that can be read; empty: there is none

  struct Answer {
    std::int64_t number = 0;
    Result<std::string> path;  // the folder of the whole save, or why it is not whole
    wire::saved::Manifest manifest;
  };
};
struct Tick {};
using JobEvent =
    std::variant<SlotsChanged, HostsMet, HostsNoted, nodes::Drained, nodes::Resumed, HostUp,
                 HostDown, HostAway, HostBack, FromHost, FromWorker, StoodStill, Suspend, Interrupt,
                 PassSignal, Scale, Advised, GiveBack::Answer, SealSave::Answer, Tick>;

// ---------------------------------------------------------------- actions

struct StartAgent {
  HostId host;
};
// The agent did not end by itself.
struct KillAgent {
  HostId host;
};
// Start a new worker in this slot. `place` is its place in the world that will form if all goes
// well; the driver makes the worker's environment from it.
struct StartWorker {
  WorkerId worker;
  SlotId slot;
  launcher::hosts::Place place;
  Generation generation;  // the newest one
  int restarts = 0;       // of a plain program, before this start
  Duration after{};       // the program begins this much later
};
struct Order {
  HostId host;
  wire::agent::ToAgent order;
};
// One message, sent once to each host, whose agent passes it on to these workers.
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
struct Log {
  report::LogLevel level = report::LogLevel::info;
  std::string text;
};
// The rank that a worker has from now on, for the labels of its output; -1: none.
struct Ranked {
  WorkerId worker;
  std::int32_t rank = -1;
};
// A question for the program of --policy exec:, never sent while an earlier one is unanswered.
struct Ask {
  std::string question;
};
// Nobody waits for this save any more: remove its files.
struct DropSave {
  std::int64_t number = 0;
};
struct Finish {
  int exit_code = 0;
  std::string last_words;
  bool time_was_up = false;   // the state is saved, and a batch system ended the job
  bool if_preempted = false;  // it may only if the batch system wants the nodes back
  bool trained = false;       // training ended well: its saves are of a finished job
};
using JobAction = std::variant<StartAgent, KillAgent, StartWorker, Order, Deliver, Record, Log,
                               Ranked, Ask, GiveBack, SealSave, DropSave, Finish>;

// Collects the actions of one step, in order.
class Actions {
 public:
  void add(JobAction action) { actions_.push_back(std::move(action)); }
  void log(report::LogLevel level, std::string text) { add(Log{level, std::move(text)}); }
  void record(std::string name, std::vector<std::pair<std::string, report::Value>> fields) {
    add(Record{report::Event{std::move(name), std::move(fields)}});
  }
  std::vector<JobAction> take() { return std::exchange(actions_, {}); }

 private:
  std::vector<JobAction> actions_;
};

}  // namespace elasticrun::job
