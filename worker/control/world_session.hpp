// This worker's sequence of worlds, as its training thread sees them: wait for a world, enter it,
// receive or send the state, lose the world, enter the next.
//
// Both train() and a loop of one's own are built on it. The decisions are in Member; here is what
// takes time: the group, the transfer and the clock.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "worker/control/control_channel.hpp"
#include "worker/control/member_lock.hpp"
#include "worker/control/saver.hpp"
#include "worker/control/step_meter.hpp"
#include "worker/control/stop.hpp"
#include "worker/core/progress.hpp"
#include "worker/state/carried.hpp"
#include "worker/state/state.hpp"

namespace elasticrun::worker::control {

struct SessionOptions {
  std::int64_t compare_steps = 0;  // see StateComparison
  std::string save_trouble;        // why the folder of --save cannot be used here; empty: it can
};

class WorldSession {
 public:
  WorldSession(MemberLock& member_lock, ControlChannel& channel, StepMeter& meter,
               state::StateTable& table, SessionOptions options = {})
      : member_lock_(member_lock),
        channel_(channel),
        meter_(meter),
        table_(table),
        saver_(member_lock, meter, table),
        options_(std::move(options)) {}
  ~WorldSession() { let_go(); }
  WorldSession(const WorldSession&) = delete;
  WorldSession& operator=(const WorldSession&) = delete;

  // This worker can become a member, or goes on as one.
  void ready(wire::TrainSpec train);
  // Blocks until this worker can step, entering worlds on the way. Returns false when the call of
  // train given to ready() is over. Throws Stop when this worker is evicted, the agent is gone, or
  // the state cannot be exchanged.
  bool await();
  // The call of train is over for this worker; await() returns false when it is over for all.
  void done(std::int64_t call);
  // A step begins, or is reduced with these votes of all. False: there is no world to step in, or
  // this step does not happen in it.
  bool begin_compute();
  bool may_apply(const core::Votes& votes);
  // A collective that the program has called is complete.
  void collective_ended();
  // A collective of the world failed here: reports it to the controller and releases the group.
  // Throws Stop if the GPU has failed, because this process can no longer use it.
  void broken(const collective::GroupBroken& error);
  // Takes this worker out of the world because its program failed; throws Stop.
  [[noreturn]] void fail(elasticrun_status status, const std::string& why);
  // The same where it is this worker that does not fit to the others: they know why it goes.
  [[noreturn]] void leave(elasticrun_status status, const std::string& why);
  // Like fail, for a mistake that all members have found at this place.
  [[noreturn]] void fail_together(const std::string& why);
  // Like that, where the members do something different. `with_steps` of them have made steps here,
  // and if the others are newcomers they alone do not fit: they leave, and the members go on in a
  // world without them (GroupBroken).
  [[noreturn]] void differ(bool has_steps, int with_steps, const std::string& why);
  // Waits until the GPU, if one is used, has done what the program has enqueued. Throws
  // GroupBroken.
  void await_gpu() const;
  // Called after each commit: saves this worker's part of the state if all have agreed to it. True:
  // no step follows in this world, because the job stops.
  bool save_if_agreed();
  // Records when a step, or the callback after it, ended: the idle time of a re-form begins there.
  void note_end(Time now) { last_end_ = now; }

  MemberLock& member_lock() { return member_lock_; }
  StepMeter& meter() { return meter_; }
  state::StateTable& table() { return table_; }
  std::int64_t compare_steps() const { return options_.compare_steps; }
  // The group of the world that await() has entered; null after broken().
  collective::Group* group() { return group_; }
  const wire::World& world() const { return world_; }
  int rank() const { return rank_; }
  int size() const { return world_.members.empty() ? 1 : static_cast<int>(world_.members.size()); }
  Generation generation() const { return world_.generation; }

  // Where training stands; it travels with the state.
  core::Progress progress;

 private:
  struct Entry {
    wire::World world;
    Rank rank;
    bool in_place = false;
    bool newcomer = false;
  };
  void enter();
  std::optional<wire::Entered> exchange(const Entry& entry, collective::Group& group);
  bool restore(const Entry& entry);
  void install(const state::Carried& received);
  void let_go();

  MemberLock& member_lock_;
  ControlChannel& channel_;
  StepMeter& meter_;
  state::StateTable& table_;
  Saver saver_;
  const SessionOptions options_;
  wire::World world_;
  int rank_ = 0;
  collective::Group* group_ = nullptr;
  Generation borrowed_;
  std::optional<Time> last_end_;
};

}  // namespace elasticrun::worker::control
