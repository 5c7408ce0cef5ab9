// The job as one pure machine: facts from hosts, workers and people in, orders and letters out.
//
// It ties together who decides what: `membership` how one world becomes the next, `liveness` who is
// silent, `pool` which slot has a worker, `autoscaler` which size is worth having. Its own part is
// the course of a job: start, replace, grow and shrink, give up, end. One driver (controller.cpp)
// gives it events and does what it says; the simulator is the other.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "autoscaler/autoscaler.hpp"
#include "autoscaler/shares.hpp"
#include "autoscaler/stragglers.hpp"
#include "job/common_end.hpp"
#include "job/divergences.hpp"
#include "job/event.hpp"
#include "job/phase.hpp"
#include "job/poison.hpp"
#include "job/pool.hpp"
#include "job/shortage.hpp"
#include "job/sink.hpp"
#include "job/source_notes.hpp"
#include "job/spec.hpp"
#include "job/troubles.hpp"
#include "job/uncounted.hpp"
#include "job/work.hpp"
#include "rendezvous/liveness.hpp"
#include "rendezvous/membership.hpp"
#include "rendezvous/suspects.hpp"

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
  wire::FromWorker letter;
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
using SupervisorEvent =
    std::variant<SlotsChanged, HostsNoted, HostUp, HostDown, HostAway, HostBack, FromHost,
                 FromWorker, StoodStill, Suspend, Interrupt, PassSignal, Scale, Advised, Tick>;

// ---------------------------------------------------------------- actions

struct StartAgent {
  HostId host;
};
// It did not go by itself.
struct KillAgent {
  HostId host;
};
struct Order {
  HostId host;
  wire::ToAgent order;
};
struct Deliver {
  HostId host;
  WorkerId worker;
  wire::ToWorker letter;
};
struct Record {
  Event event;
};
struct Say {
  Tone tone = Tone::info;
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
using SupervisorAction =
    std::variant<StartAgent, KillAgent, Order, Deliver, Record, Say, Ranked, Ask, Finish>;

// What the supervisor needs from its surroundings; pure functions.
struct Wiring {
  // The complete order to start the worker with this rank in a world of these slots, which is the
  // one that there will be if all goes well.
  std::function<wire::StartWorker(WorkerId, const std::vector<SlotId>&, Rank)> start_order;
  std::function<std::string(HostId)> host_name;
  // What kind of machine it is, where somebody has said so; else empty, or no function at all.
  std::function<std::string(HostId)> host_type;
};

class Supervisor {
 public:
  static Result<std::unique_ptr<Supervisor>> make(const JobSpec& spec, Wiring wiring);

  Supervisor(const Supervisor&) = delete;

  std::vector<SupervisorAction> step(const SupervisorEvent& event, Time now);
  Time wake_at(Time now) const;

  Phase phase() const { return phase_; }
  const rendezvous::Membership& membership() const { return membership_; }
  const Pool& pool() const { return pool_; }
  int target() const { return target_; }
  // Why the job ends; empty while it does not.
  const std::string& end_reason() const { return words_; }

 private:
  Supervisor(const JobSpec& spec, Wiring wiring, autoscaler::Autoscaler scaler);

  // hosts.cpp
  void on(const SlotsChanged&, Time now);
  void tell_shortage(const SlotsChanged&, Time now);
  void on(const HostsNoted&, Time);
  void on(const HostUp&, Time now);
  void on(const HostDown&, Time now);
  void on(const HostAway&, Time now);
  void on(const HostBack&, Time now);
  void on(const FromHost&, Time now);
  // supervisor.cpp: workers and people
  void on(const FromWorker&, Time now);
  void on(const StoodStill&, Time now);
  void on(const Suspend&, Time);
  void on(const Interrupt&, Time now);
  void on(const PassSignal&, Time now);
  void on(const Scale&, Time now);
  void on(const Advised&, Time);
  void on(const Tick&, Time) {}
  bool runs_there(WorkerId id, HostId host) const;
  void hear(HostId, const wire::WorkerStarted&, Time now);
  void hear(HostId, const wire::StartFailed&, Time now);
  void hear(HostId, const wire::WorkerExited&, Time now);
  void hear(HostId, const wire::Output&, Time now);
  void hear(HostId, const wire::ParcelWanted&, Time) {}
  void hear(HostId, const wire::Beat&, Time now);
  void hear(HostId, const wire::GpuLost&, Time now);
  void hear(HostId, const wire::Goodbye&, Time) {}  // its driver makes it a HostDown
  void hear_sample(WorkerId worker, const wire::Sample& sample, Time now);
  void hear_step_samples(const wire::StepSamples& samples);
  void hear_divergence(const wire::Diverged& diverged, Time now);
  void hear_complaints(const std::vector<wire::Complaint>& complaints, Time now);
  void check_suspects(Time now);
  void check_liveness(Time now);
  bool watches_stragglers() const;
  void check_stragglers(Time now);
  void progress(Step step);
  void report_sample(const autoscaler::WorldSample& round);

  // course.cpp: what membership says
  void tell(const rendezvous::Event& event, Time now);
  void on(rendezvous::ToMember&, Time now);
  void on(rendezvous::Fence&, Time now);
  void on(rendezvous::LeftOut&, Time now);
  void on(rendezvous::BecameReady&, Time now);
  void on(rendezvous::WorldFormed&, Time now);
  void record_world(const rendezvous::WorldFormed&);
  void say_world(const rendezvous::WorldFormed&, Time now);
  void on(rendezvous::ChangeEnded&, Time now);
  void on(rendezvous::WorldCommitted&, Time now);
  void on(rendezvous::Trained&, Time now);
  void on(rendezvous::WorkerLeft&, Time now);
  void on(rendezvous::WorldBroken&, Time now);
  void on(rendezvous::BelowMinimum&, Time now);
  void on(rendezvous::StateLost&, Time now);
  void batch_said(const wire::TrainSpec& train);

  // staffing.cpp: who is started, stopped, proposed
  void staff(Time now);
  std::string too_few(const std::vector<SlotId>& slots) const;
  bool hosts_are_final() const;
  void wait_for_more(const std::string& what, Time now);
  void begin(bool guessed, Time now);
  std::vector<SlotId> first_choice(Time now) const;
  void ask_for_hosts(const std::vector<SlotId>& wanted);
  bool gathered(const std::vector<SlotId>& wanted, Time now);
  void tell_waiting(const std::set<HostId>& missing, Time now);
  void start_wanted(const std::vector<SlotId>& wanted, Time now);
  void give_up_late_starters(Time now);
  void dismiss_unwanted(const std::vector<SlotId>& wanted, Time now);
  void tell_wanted(const std::vector<SlotId>& slots, const std::vector<WorkerId>& members,
                   Time now);
  void propose(const std::vector<SlotId>& wanted, Time now);
  std::size_t room_beside(std::size_t leavers) const;
  void decide_size(Time now);
  void tell_forecast(const autoscaler::Decision& decision);
  bool startable(SlotId slot) const;
  bool must_become_ready(const Worker& worker) const;
  bool may_join(WorkerId id, Time now) const;

  // planning.cpp: which plan a world gets
  bool needs_keeper() const;
  wire::BatchPlan plan_for(const std::vector<wire::Member>& members) const;
  std::vector<autoscaler::Member> with_types(const std::vector<wire::Member>& members) const;
  std::optional<std::string> better_plan(Time now);

  // ending.cpp: failures and the end
  struct WorkerEnd {
    int code = 0;
    int signal = 0;
    std::string how;
    Time dead_by{};          // from then on it certainly runs no more
    bool with_host = false;  // its host is told of, not each of its workers
  };
  void worker_ended(WorkerId id, const WorkerEnd& end, Time now);
  void failure(SlotId slot, bool member, const std::string& what, Tone tone, Time now);
  void step_killed(const std::string& who, Time now);
  void end(int code, std::string words, Time now);
  bool ended_by_mistake(const char* what, Time now);
  void stop_worker(WorkerId id, std::int32_t signal, Duration grace, Time now);
  void leave_unkillable(Time now);
  Time patience_ends() const;
  void wind_up(Time now);
  void close(Time now);
  std::string last_words(Time now) const;
  std::string steps_made() const;
  void tell_story();

  void happen(Happening happening) { phase_ = next(phase_, happening); }
  bool ending() const { return phase_ >= Phase::stopping; }
  std::string name_of(WorkerId id) const;
  void record(std::string name, std::vector<std::pair<std::string, Value>> fields);
  void say(Tone tone, std::string text) { out_.push_back(Say{tone, std::move(text)}); }

  void tell_troubles(Time now, bool all);

  struct Host {
    bool asked = false;  // its agent is started, or being started
    bool up = false;
    Time leased_until{};  // then its agent has killed its workers, if no beat came back
  };
  // A world, as the summary at the end tells it.
  struct Chapter {
    int size = 0;
    Step from;
    std::string why;
  };
  static constexpr std::size_t story_max = 12;
  static constexpr Duration silence = std::chrono::seconds(3);  // then a person wants to know why
  // From SIGKILL to the end of a process, on a host that is well.
  static constexpr Duration dying_time = std::chrono::seconds(10);
  static constexpr Duration closing_time =
      std::chrono::seconds(5);  // of an agent that says nothing
  struct PendingChange {
    ChangeId id;
    std::string reason;
  };

  JobSpec spec_;
  Wiring wiring_;
  autoscaler::Autoscaler scaler_;  // these two before membership, which asks them for plans
  autoscaler::Shares shares_;
  rendezvous::Membership membership_;
  rendezvous::Liveness liveness_;
  rendezvous::Suspects suspects_;
  autoscaler::Stragglers stragglers_;
  Pool pool_;
  Phase phase_ = Phase::starting;
  std::map<HostId, Host> hosts_;
  std::map<WorkerId, std::int32_t> ranks_;

  std::set<HostId> failed_hosts_;  // that have no agent since their last one failed, or its start
  Troubles troubles_;              // of hosts, to be told
  Shortage shortage_;              // of slots, while workers run

  bool library_ = false;  // a worker has joined through the library
  bool waiting_told_ = false;
  bool gathering_ = true;                  // the hosts of the first workers are not all heard yet
  std::optional<std::set<SlotId>> first_;  // slots of the first workers not started yet
  std::vector<SlotId> first_ranks_;        // all of those, in rank order
  int target_ = 0;                         // workers wanted
  std::int64_t target_batch_ = 0;          // with it, where the policy says so
  int max_restarts_ = 10;
  Poison poison_;
  Divergences divergences_;
  Uncounted uncounted_;
  bool has_keeper_ = false;     // the present world has a member that computes nothing
  int failures_ = 0;            // in a row, without a newly committed step
  bool counted_world_ = false;  // of the last world one is in failures_; its others came with it
  CommonEnd ends_;              // of members, since a world has stepped
  Step newest_ = no_state;
  Work work_;
  bool left_ = false;    // since the last world formed a member has left by itself
  bool failed_ = false;  // since then one has failed
  std::optional<PendingChange> change_;
  ChangeId last_change_;
  Time change_not_before_{};
  int refused_changes_ = 0;  // in a row
  Time short_since_ = never;
  bool unsettled_ = false;            // as the autoscaler was last told
  std::string last_reason_;           // of the autoscaler, said once
  std::set<std::string> bad_advice_;  // kinds of it that were told
  std::string move_reason_;           // why the size is about to change
  std::optional<bool> forecast_met_;  // as a person was last told

  std::string standstill_;  // ours, long enough for hosts to stop their workers; empty: none
  // Killed and still there: no part of the job any more, but perhaps of a world that may step.
  std::map<WorkerId, HostId> unkillable_;

  int exit_code_ = 0;
  std::string words_;
  bool interrupted_ = false;
  Time deadline_ = never;  // of stopping, then of closing

  Time began_{};
  Time counted_{};  // up to here worker time is summed
  double worker_s_ = 0;
  int worlds_ = 0, planned_ = 0, forced_ = 0;
  std::deque<Chapter> story_;     // the last worlds, in order
  std::string told_;              // the last decision that a person was told
  std::string backend_ = "gloo";  // what carries the group, as a person thinks

  std::vector<SupervisorAction> out_;
};

}  // namespace elasticrun::job
