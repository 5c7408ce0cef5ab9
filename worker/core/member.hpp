// The worker's side of a change of the world, without threads, sockets or groups.
//
// Two actors meet here: the control thread, which hears the controller, and the training thread,
// which steps. Between them stands one gate: a step is computed, reduced, applied, committed, and
// an Abort that arrives before apply discards it, while one that arrives inside apply is answered
// when the commit is done. So the number in an Answer is final: nothing of an aborted generation
// commits after it. A driver holds a lock around each call and does what the outbox says.
//
// The gate also keeps the lease of this host. The agent kills its workers when that has ended, but
// it may be late: swapped out, stopped, or waiting for a file server. So no step is begun or
// applied after the lease, and a world that the controller has given up cannot go on beside the
// next one.
//
// Why not let each group's own failure decide: a collective that failed on one rank may have
// succeeded on another. Only the step numbers that all survivors answer tell which state is newest.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "wire/messages.hpp"
#include "worker/collective/group.hpp"

namespace elasticrun::worker::core {

// What the driver is to do, in order.
struct Send {
  wire::FromWorker message;
};
// Create this rank's end of a group and answer with published(), in the background.
struct FormGroup {
  collective::GroupSpec spec;
};
// Connect it to the others and answer with formed() or, any time from FormGroup on, form_failed().
struct ConnectGroup {
  Generation generation;
  std::vector<std::string> addresses;  // by rank; empty where it is not needed
};
// Make every blocked call of these groups fail within milliseconds; they are not used again.
struct AbortGroups {
  Generation up_to;
};
// Abort this group alone and close it: the world it was for is cancelled.
struct DropGroup {
  Generation generation;
};
// Nobody needs these groups any more; close them off the training thread.
struct CloseGroups {
  Generation below;
};
using MemberAction =
    std::variant<Send, FormGroup, ConnectGroup, AbortGroups, DropGroup, CloseGroups>;

// By rank, who has the state of the world.
std::vector<bool> holders(const wire::World& world);

// What the training thread is to do next.
enum class Task { wait, enter, step, released, evicted };

class Member {
 public:
  explicit Member(WorkerId self) : self_(self) {}

  // ---- control thread
  void receive(const wire::ToWorker& message);
  void published(Generation generation, std::string addresses, std::vector<int> needs = {});
  // `needs`, `way`, `strangers`: see Group.
  void formed(Generation generation, std::string way, int strangers = 0);
  void form_failed(Generation generation, const collective::GroupBroken& error);
  // Directly before an Abort: what the groups here are held up by, for the answer to it.
  void held_up(const std::vector<collective::HeldUp>& groups);

  // ---- training thread
  // The program is in train (or start): this worker can become a member, or goes on as one.
  void ready(const wire::TrainSpec& train);
  Task task() const;

  // Task::enter. The state goes from holders to the others inside the new group; the receiver asks
  // may_swap before it overwrites what it has, and after a yes it swaps without fail.
  const wire::World& world() const { return world_->world; }
  Rank rank() const { return world_->rank; }
  bool holds_state() const;
  // A newcomer of a planned change has nothing to lose. In a world that forms at once even the
  // fresh weights of one without state may be needed: should rank 0 of a first world die in the
  // transfer, they are what the next one begins with.
  bool may_receive_in_place() const { return committed_ == no_state && !world_->at_once; }
  void begin_transfer();
  bool may_swap();
  // Also for holders. `report` carries step and figures; the generation is filled in.
  void entered(wire::Entered report);

  // Task::step. Each call returns false when the step is to be discarded.
  bool begin_compute(Time now);
  // 1 when this worker wants the switch to the prepared world; rides on the step's reduction.
  double vote() const { return next_ && next_->go ? 1 : 0; }
  // `votes` is the sum over the world: when it equals the size, everybody switches after this step.
  bool may_apply(double votes, Time now);
  // False: the step counts, but the world was aborted meanwhile.
  bool commit();
  // A collective of this world, or the transfer into it, failed here.
  void broken(const collective::GroupBroken& error);
  // This step's reduction has shown that the ranks in `odd`, or where it is empty no ranks in
  // particular, hold another state than the rest. A member among them holds none from now on; where
  // machines of several kinds are `mixed`, nothing follows.
  void diverged(const std::vector<int>& odd, const std::string& where, bool mixed);
  // Of the keeper of the state: who computes what in the step that begins.
  void explain(wire::StepSamples samples);
  // The samples of this call of train are used; a loop of one's own may say so behind a collective
  // that no commit has followed. False: the program is inside apply, and has to commit first. After
  // a yes the task is another one than Task::step.
  bool done(std::int64_t call);
  // The program left train.
  void outside() { phase_ = Phase::outside; }
  void leave(const std::string& reason);
  // Out of the world without a word, because the program failed: its memory may be half-new, so
  // nothing is answered any more, and its end or the controller's deadline counts as the failure.
  void fail(const std::string& reason);

  Step committed() const { return committed_; }
  bool in_world() const { return world_ && world_->entered; }
  bool in_transfer() const { return phase_ == Phase::transfer; }
  // True when a group of this generation may still be used by the training thread.
  bool running(Generation generation) const {
    return world_ && world_->world.generation == generation;
  }
  const std::string& dismissed() const { return dismissed_; }

  std::vector<MemberAction> take_outbox() { return std::exchange(outbox_, {}); }

 private:
  enum class Phase { outside, waiting, transfer, swap, between, compute, apply, done, leaving };

  struct Place {
    wire::World world;
    Rank rank{-1};  // -1: not in it (a leaver)
    bool go = false;
    bool at_once = false;
    bool entered = false;
    bool committed_once = false;
    bool broken = false;
  };

  std::vector<wire::Complaint> complaints(
      const wire::World& world, const std::vector<collective::PeerTrouble>& troubles) const;
  void on(const wire::Prepare&);
  void on(const wire::Gathered&);
  void on(const wire::Go&);
  void on(const wire::Cancel&);
  void on(const wire::Abort&);
  void on(const wire::Release&);
  void on(const wire::Dismiss&);
  void on(const wire::Lease&);
  bool lease_holds(Time now);
  void answer();
  void enter_next();
  void dismiss_if_due();
  void evict(const std::string& reason);
  bool expects(Generation generation) const {
    return next_ && next_->world.generation == generation;
  }
  template <class Message>
  void send(Message message) {
    outbox_.push_back(Send{std::move(message)});
  }

  WorkerId self_;
  Phase phase_ = Phase::outside;
  Step committed_ = no_state;
  std::optional<Place> world_;  // entered, or being entered
  std::optional<Place> next_;   // prepared, or being prepared
  bool agreed_ = false;         // this step's reduction said: switch
  Generation aborted_;          // nothing up to here is used any more
  bool owes_answer_ = false;
  std::vector<wire::Complaint> held_up_;  // by whom, for its answer
  std::int64_t released_call_ = 0;
  std::int64_t call_ = 0;
  std::optional<std::string> due_;  // dismissed, at the end of this step
  Time lease_ends_ = never;
  bool lease_over_ = false;  // as far as is known; then nothing is begun or applied
  bool evicted_ = false;
  std::string dismissed_;
  std::vector<MemberAction> outbox_;
};

}  // namespace elasticrun::worker::core
