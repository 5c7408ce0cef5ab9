// A job as one pure state machine: events from hosts, workers and users go in, orders and messages
// come out.
//
// It composes small machines, one idea each: which hosts there are (hosts.hpp), their slots
// (slots.hpp) and workers (workers.hpp), the first world (first_world.hpp), restarts of programs
// without the library (restarts.hpp), which size is worth having (sizing.hpp), planned changes
// (changes.hpp) and saves (saves.hpp), what failures lead to (failures.hpp), how the job ends
// (ending.hpp). Membership decides how one world becomes the next, and Liveness finds silent hosts
// and workers. Each event handler calls the machines that the event concerns. All that is due by
// time stands in one table (looks, in job.cpp), except the end of the job itself (wind_up), which
// follows from all the rest.
//
// One driver (controller.cpp) feeds it events and carries out its actions; the simulator and the
// scenarios are other drivers.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "job/core/course/ending.hpp"
#include "job/core/course/requests.hpp"
#include "job/core/course/sizing.hpp"
#include "job/core/course/summary.hpp"
#include "job/core/hosts/hosts.hpp"
#include "job/core/hosts/watch.hpp"
#include "job/core/terms/events.hpp"
#include "job/core/workers/failures.hpp"
#include "job/core/workers/first_world.hpp"
#include "job/core/workers/restarts.hpp"
#include "job/core/workers/slots.hpp"
#include "job/core/workers/staff_time.hpp"
#include "job/core/workers/workers.hpp"
#include "job/spec.hpp"
#include "rendezvous/membership.hpp"

namespace elasticrun::job {

class Job {
 public:
  static Result<std::unique_ptr<Job>> make(const JobSpec& spec);

  Job(const Job&) = delete;

  std::vector<JobAction> step(const JobEvent& event, Time now);
  Time wake_at(Time now) const;

  // No worker has joined through the library.
  bool plain() const { return first_.program() == workers::Program::plain; }
  course::Phase phase() const { return ending_.phase(); }
  // Why the job ends; empty: it is not ending, or all workers finished.
  const std::string& end_reason() const { return ending_.words(); }
  int target() const;
  const rendezvous::Membership& membership() const { return membership_; }
  const workers::Slots& slots() const { return slots_; }
  const workers::Workers& workers() const { return workers_; }

 private:
  Job(const JobSpec& spec, course::Sizing sizing);

  // ---- the table of timed checks: job.cpp
  struct Look {
    Time (Job::*at)() const;
    void (Job::*look)(Time now);
  };
  static const std::array<Look, 8> looks;

  // ---- the user and the controller itself: job.cpp
  void on(const StoodStill&, Time now);
  void on(const Suspend&, Time);
  void on(const Interrupt&, Time now);
  void hear(HostId, const wire::agent::StopAsked&, Time now);
  void stop_by(int signal, const char* to, bool time_is_up, bool if_preempted, Time now);
  void on(const PassSignal&, Time);
  void on(const Scale&, Time now);
  void on(const Advised&, Time now);
  void on(const Tick&, Time) {}

  // ---- hosts: job_hosts.cpp
  void on(const SlotsChanged&, Time now);
  void on(const HostsMet&, Time);
  void on(const HostsNoted&, Time);
  void on(const nodes::Drained&, Time now);
  void on(const nodes::Resumed&, Time now);
  void on(const HostUp&, Time now);
  void on(const HostDown&, Time now);
  void on(const HostAway&, Time now);
  void on(const HostBack&, Time now);
  void on(const FromHost&, Time now);
  void hear(HostId, const wire::agent::WorkerStarted&, Time now);
  void hear(HostId, const wire::agent::StartFailed&, Time now);
  void hear(HostId, const wire::agent::WorkerDies&, Time now);
  void hear(HostId, const wire::agent::WorkerExited&, Time now);
  void hear(HostId, const wire::agent::Output&, Time now);
  void hear(HostId, const wire::agent::BundleWanted&, Time) {}
  void hear(HostId, const wire::agent::Heartbeat&, Time now);
  void hear(HostId, const wire::agent::GpuLost&, Time now);
  void hear(HostId, const wire::agent::Progress&, Time now);
  void hear(HostId, const wire::agent::HostLeaves&, Time now);
  void hear(HostId, const wire::agent::Goodbye&, Time) {}  // the driver turns it into a HostDown
  void give_up_host(HostId host, const std::string& reason, Time now);
  std::size_t hosts_well() const;
  Time watch_at() const;
  void watch_hosts(Time now);

  // ---- hosts that nobody needs: job_giving_back.cpp
  void give_back_unused_hosts(Time now);
  void drop_hosts(const std::set<HostId>& dropped);
  bool is_free(HostId host) const;
  void let_dropped_hosts_go();
  void host_freed(HostId host);
  void on(const GiveBack::Answer&, Time now);

  // ---- workers: job_workers.cpp
  void on(const FromWorker&, Time now);
  bool check_claims(const FromWorker& from, Time now);
  void hear(WorkerId, const wire::Ready&, Time now);
  void hear(WorkerId, const wire::Sample&, Time now);
  void hear(WorkerId, const wire::Committed&, Time now);
  void hear(WorkerId, const wire::Answer&, Time now);
  void hear(WorkerId, const wire::Saved&, Time now);
  void hear(WorkerId, const wire::Unreadable&, Time now);
  void hear(WorkerId, const wire::Done&, Time now);
  void hear(WorkerId, const wire::Leave&, Time now);
  void hear(WorkerId, const wire::Broken&, Time now);
  void hear(WorkerId, const wire::PrepareFailed&, Time now);
  void hear(WorkerId, const wire::StepSamples&, Time);
  void hear(WorkerId, const wire::Diverged&, Time now);
  void hear(WorkerId, const auto&, Time) {}  // other messages concern only membership
  void train_again(Time now);
  void hear_complaints(WorkerId id, Generation generation,
                       const std::vector<wire::Complaint>& complaints, Time now);
  void dismiss(WorkerId worker, Time now);
  void give_up_worker(WorkerId worker, const std::string& why, Time now);
  void stop_worker(WorkerId worker, std::int32_t signal, Duration grace, Time now);
  void fence(WorkerId worker, const std::string& why, Time now);
  void lose_worker(WorkerId worker, const std::string& why, Time now);
  Time worker_deadlines_at() const { return workers_.wake_at(); }
  void act_on_worker_deadlines(Time now);

  // ---- what the end of a worker means: job_worker_ends.cpp
  struct WorkerEnd {
    int code = 0;
    int signal = 0;
    std::string how;
    std::int64_t error_ns = 0;  // when the worker wrote why; 0: it did not
    Time dead_by{};             // from this time on it certainly does not run
    bool with_host = false;     // the host ended; its workers are not reported singly
    bool never_ran = false;
    bool still_dies = false;  // it does nothing more, but its process has not ended yet

    // As a shell reports it.
    int exit_code() const { return signal != 0 ? exit_code::signal_base + signal : code; }
  };
  void worker_ended(WorkerId worker, const WorkerEnd& end, Time now);
  void strike_off(WorkerId worker, const WorkerEnd& end, Time now);
  void judge_end(WorkerId id, const workers::Worker& worker, const WorkerEnd& end, Time now);
  void keep_failure(const std::string& what, const WorkerEnd& end, bool replaced_in_training);
  void failure(SlotId slot, bool member, const std::string& what, report::LogLevel level, Time now);

  // ---- worlds: job_worlds.cpp
  Time membership_at() const { return membership_.wake_at(); }
  void tick_membership(Time now) { tell(rendezvous::Tick{}, now); }
  void tell(const rendezvous::Event& event, Time now);
  void on(rendezvous::ToMembers&, Time now);
  void on(rendezvous::Fence&, Time now);
  void on(rendezvous::LeftOut&, Time now);
  void on(rendezvous::BecameReady&, Time now);
  void on(rendezvous::PlanWanted&, Time now);
  void on(rendezvous::WorldFormed&, Time now);
  void on(rendezvous::ChangeEnded&, Time now);
  void on(rendezvous::WorldCommitted&, Time now);
  void on(rendezvous::Dismissed& dismissed, Time now);
  void on(rendezvous::Trained&, Time now);
  void on(rendezvous::WorkerLeft&, Time now);
  void on(rendezvous::WorldBroken&, Time now);
  void on(rendezvous::BelowMinimum&, Time now);
  void on(rendezvous::StateLost&, Time now);
  void progress(StepId step, Time now);
  void all_left(Time now);
  void state_lost(const std::string& why, const std::string& save_trouble, Time now);
  void record_world(const rendezvous::WorldFormed&);
  void say_world(const rendezvous::WorldFormed&, Time now);
  std::vector<autoscaler::Member> with_types(const std::vector<wire::Member>& members) const;

  // ---- starting and stopping workers, proposing changes: job_staffing.cpp
  void concerns_staff(Time now) { staff_time_.concerns(now); }
  Time staff_at() const { return staff_time_.wake_at(); }
  void look_at_staff(Time now);
  void staff(Time now);
  void tell_unsettled(Time now);
  void fill(Time now);
  void ask_for_hosts(const std::vector<SlotId>& wanted);
  void start_missing(const std::vector<SlotId>& wanted, Time now);
  void dismiss_unwanted(const std::vector<SlotId>& wanted, Time now);
  std::vector<SlotId> slots_wanted(int spares, Time now) const;
  void tell_wanted(const std::vector<SlotId>& slots, Time now);
  bool may_propose(Time now) const;
  void propose(const std::vector<SlotId>& wanted, Time now);
  void consider_plan(Time now);
  void begin_change(rendezvous::Change change, Time now);
  std::optional<rendezvous::Change> difference(const std::vector<SlotId>& wanted, Time now) const;
  bool on_leaving_host(WorkerId worker) const;
  bool some_member_is_leaving() const;
  bool every_member_leaves() const;
  std::size_t room_beside(std::size_t leavers) const;
  bool startable(SlotId slot) const;
  int minimum() const;
  bool may_join(WorkerId worker, Time now) const;

  // ---- the first workers: job_gathering.cpp
  std::optional<std::string> too_few(const std::vector<SlotId>& slots) const;
  void wait_for_more(const std::string& what, Time now);
  std::vector<SlotId> first_choice(Time now) const;
  void gather(Time now);
  void tell_missing(const std::set<HostId>& missing, Time now);
  void begin(const std::vector<SlotId>& here, Time now);

  // ---- programs without the library: job_restarts.cpp
  // The size that the next run of a plain program must have, if it may not differ.
  std::optional<int> run_size() const {
    return plain() ? restarts_.fixed_size() : std::optional<int>();
  }
  workers::RunEnd run_end(WorkerId id, const workers::Worker& worker, const WorkerEnd& end,
                          Time now) const;
  void plain_ended(WorkerId worker, const workers::Worker& row, const WorkerEnd& end, Time now);
  void end_run(const std::string& why, Time now);
  void run_ended(Time now);
  void keep_run(Time now);
  bool run_is_settled() const;

  // ---- sizes: job_sizing.cpp
  Time size_at() const;
  void decide_size(Time now);
  Time stragglers_at() const;
  void check_stragglers(Time now);
  bool replaces_stragglers(Time now) const;
  bool needs_keeper() const;
  void step_kills(Time now);
  std::optional<std::string> better_plan(Time now);

  // ---- saves: job_saves.cpp
  void on(const SealSave::Answer&, Time now);
  bool fits(WorkerId worker, const wire::Ready& ready, Time now);
  void tell_restore(Time now);
  bool members_step() const;
  bool between_calls() const;
  bool no_step_comes() const;  // before the user does something, or workers come
  bool may_ask_for_save() const;
  bool nothing_to_save() const;
  bool all_have_left() const;
  Time saves_at() const;
  void look_at_saves(Time now);
  void doubt_saves();
  void ask_for_save(Time now);
  void save_is_overdue(Time now);
  void give_up_save(const std::string& why, Time now);
  void drop_save(std::int64_t number);
  void stop(course::Saves::Stop why, Time now);
  void stop_saved(Time now);
  void stop_unsaved(const std::string& why, Time now);

  // ---- the end: job_ending.cpp
  void end(course::Cause cause, std::string words, Time now, int code = exit_code::ok);
  void end_saved(std::string words, Time now);
  bool ended_by_mistake(const char* what, Time now);
  void wind_up(Time now);
  void stop_idle(Time now);
  void workers_gone(Time now);
  void close(Time now);
  Time troubles_at() const;
  void tell_troubles(Time now);
  void tell_all_troubles(Time now);

  std::string name_of(WorkerId worker) const;
  std::string name_of(HostId host) const { return hosts_.name(host); }

  // At most 15 fields: a sixteenth belongs in one of the machines.
  const JobSpec spec_;
  hosts::Hosts hosts_;
  hosts::Watch watch_;
  workers::Slots slots_;
  workers::Workers workers_;
  workers::FirstWorld first_;
  workers::Restarts restarts_;
  course::Sizing sizing_;
  course::Requests requests_;
  rendezvous::Membership membership_;
  workers::Failures failures_;
  course::Ending ending_;
  course::Summary summary_;
  workers::StaffTime staff_time_;
  Actions out_;
};

}  // namespace elasticrun::job
