// The worker's side of a change of the world, without threads, sockets or groups.
//
// Two threads call it: the control thread, which receives the controller's messages, and the
// training thread, which makes the steps. Between them stands one gate. A step is computed,
// reduced, applied, committed; an Abort that arrives before apply discards the step, while one that
// arrives inside apply is answered when the commit is done. So the step number in an Answer is
// final: nothing of an aborted generation commits after it. A driver holds a lock around each call
// and carries out the actions in the outbox.
//
// The gate also checks the lease of this host. After its end no step is begun or applied, so a
// world that the controller has given up makes no step beside the next one. The agent's kill is no
// substitute: the agent keeps its workers while the controller is stopped, and may be late itself
// (swapped out, stopped, or waiting for a file server).
//
// Why not let each group's own failure decide: a collective that failed on one rank may have
// succeeded on another. Only the step numbers in the survivors' Answers show which state is newest.
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
#include "worker/core/votes.hpp"

namespace elasticrun::worker::core {

// The actions that the driver carries out, in order. Send: to the controller.
struct Send {
  wire::FromWorker message;
};
// Create this rank's end of a group and answer with published(), in the background.
struct FormGroup {
  collective::GroupSpec spec;
};
// Connect the group to the others and answer with formed() or, any time after FormGroup, with
// form_failed().
struct ConnectGroup {
  Generation generation;
  std::vector<std::string> addresses;  // by rank; an empty one is not needed
};
// Make every blocked call of the groups up to this generation fail within milliseconds; the groups
// are not used again.
struct AbortGroups {
  Generation up_to;
};
// Abort this one group and close it: its world has been cancelled.
struct DropGroup {
  Generation generation;
};
// No member needs the groups below this generation any more; close them, not on the training
// thread.
struct CloseGroups {
  Generation below;
};
using MemberAction =
    std::variant<Send, FormGroup, ConnectGroup, AbortGroups, DropGroup, CloseGroups>;

// This worker's part in a save of the state.
struct SaveOrder {
  wire::Save save;
  Generation generation;
  Rank rank;
  int size = 0;
  // The others wait, so this worker writes before it goes on; false: behind the program's back.
  bool waits = false;
};

// For each rank, whether it holds the state of the world.
std::vector<bool> holders(const wire::World& world);

// What the training thread is to do next.
enum class Task { wait, enter, step, save, released, evicted };

class Member {
 public:
  explicit Member(WorkerId self) : self_(self) {}

  // ---- control thread
  void receive(const wire::ToWorker& message);
  void published(Generation generation, std::string addresses, std::vector<int> needs = {});
  // For `needs`, `formation` and `rejected` see collective::Group.
  void formed(Generation generation, std::string formation, int rejected = 0);
  void form_failed(Generation generation, const collective::GroupBroken& error);
  // Called directly before an Abort: what the groups here wait for, to be reported in the Answer.
  void held_up(const std::vector<collective::HeldUp>& groups);

  // ---- training thread
  // The program has called train (or start): this worker can become a member, or goes on as one.
  void ready(const wire::TrainSpec& train);
  Task task() const;

  // For Task::enter. The state goes from holders to the others inside the new group; a receiver
  // asks may_swap before it overwrites what it has, and after true it always completes the swap.
  const wire::World& world() const { return world_->world; }
  Rank rank() const { return world_->rank; }
  bool holds_state() const;
  // A newcomer of a planned change has nothing to lose. In a world that forms at once even the
  // fresh weights of a worker without state may be needed: if rank 0 of a first world dies in the
  // transfer, the next world begins with them.
  bool may_receive_in_place() const { return committed_ == no_state && !world_->at_once; }
  void begin_transfer();
  bool may_swap();
  // Called by receivers and holders. `report` carries the step and the measurements; the generation
  // is filled in here.
  void entered(wire::Entered report);

  // For Task::step. Each of these calls returns false when the step is to be discarded.
  bool begin_compute(Time now);
  // What is summed in the step's reduction (votes.hpp). In a step after which the world must not
  // change (`may_change` is false) it only says whether to save.
  Votes votes(bool may_change = true);
  // `sums` are the sums over the world: they say what all members do after this step.
  bool may_apply(const Votes& sums, Time now);
  // The step counts. What has become of its world:
  enum class After {
    stands,  // or all members have agreed to enter the next one
    left,    // a member has left after this step: what ends with it still belongs to this world
    aborted
  };
  After commit();
  // A collective that the program has called between two commits is complete.
  void collective_ended();
  // The save that all have agreed to in the step just committed, or that came when no step was
  // left (Task::save), once; nothing: none.
  std::optional<SaveOrder> take_save() { return std::exchange(save_now_, std::nullopt); }
  // This worker's part of a save is written, or could not be.
  void saved(wire::Saved report);
  // The save that its world begins with cannot be read here.
  void unreadable(const std::string& reason, bool of_reader);
  // A collective of this world, or the transfer into it, failed here.
  void broken(const collective::GroupBroken& error);
  // This step's reduction has shown that the ranks in `odd` hold another state than the rest; `odd`
  // is empty when no majority agrees. A member in `odd` counts as holding no state from now on.
  // With machines of several kinds in the world (`mixed`) the difference is only reported.
  void diverged(const std::vector<int>& odd, const std::string& where, bool mixed);
  // Called on the rank that the plan names as keeper: reports which rank computes which samples in
  // the step that begins.
  void explain(wire::StepSamples samples);
  // The samples of this call of train are used; a loop of one's own may call this after a
  // collective that no commit has followed. Returns false when the program is inside apply and must
  // commit first. After true the task is no longer Task::step.
  bool done(std::int64_t call);
  // The program has returned from train.
  void outside() { phase_ = Phase::outside; }
  // Leaves the world for good, and reports it. While leaves() is true, a peer may still need this
  // worker's groups for the last step, so they stay open.
  void leave(const std::string& reason);
  bool leaves() const { return leaves_; }
  // Leaves the world without a report, because the program failed. Its memory may be half-new, so
  // no message is answered any more; the end of its process or the controller's deadline counts as
  // the failure.
  void fail(const std::string& reason);

  StepId committed() const { return committed_; }
  bool in_world() const { return world_ && world_->entered; }
  bool in_transfer() const { return phase_ == Phase::transfer; }
  // Whether the training thread may still use a group of this generation.
  bool running(Generation generation) const {
    return world_ && world_->world.generation == generation;
  }
  const std::string& dismissed() const { return dismissed_; }

  std::vector<MemberAction> take_outbox() { return std::exchange(outbox_, {}); }

 private:
  // saved: all members have agreed to make no more steps; the state is being saved, or is.
  enum class Phase {
    outside,
    waiting,
    transfer,
    swap,
    between,
    compute,
    apply,
    saved,
    done,
    leaving
  };

  struct Place {
    wire::World world;
    Rank rank{-1};  // -1: this worker is not in it (it leaves)
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
  void abort(const wire::Abort&);
  void close_groups();
  bool has_reached(const wire::Abort& order) const;
  bool abort_if_reached();
  void on(const wire::Save&);
  void on(const wire::Release&);
  void on(const wire::Dismiss&);
  void on(const wire::Lease&);
  bool lease_holds(Time now);
  void answer();
  void enter_next();
  void save_next(const wire::Save& save, bool waits);
  void save_without_step();
  void save_alone(const wire::Save& save);
  bool writes_without_step() const;  // given save_now_
  void dismiss_if_due();
  bool may_be_needed() const;
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
  StepId committed_ = no_state;
  std::int64_t collectives_ = 0;       // since then
  std::optional<Place> world_;         // the world entered, or being entered
  std::optional<Place> next_;          // the world prepared, or being prepared
  bool agreed_ = false;                // in this step's reduction all members voted to switch
  std::optional<wire::Save> asked_;    // the save that was asked for and not agreed to yet
  std::optional<wire::Save> voted_;    // the save that this worker has voted for in this step
  bool save_agreed_ = false;           // in this step's reduction all members voted for it
  std::optional<SaveOrder> save_now_;  // agreed to, and not taken yet
  std::int64_t newest_save_ = 0;       // number of the newest save that was asked for
  Generation aborted_;                 // no group up to this generation is used any more
  bool groups_open_ = false;           // those groups are, for others that still need them
  bool owes_answer_ = false;
  std::optional<wire::Abort> abort_after_;  // is carried out when that is reached
  std::vector<wire::Complaint> held_up_;    // what this worker waited for, for its Answer
  std::int64_t released_call_ = 0;
  std::int64_t call_ = 0;
  bool names_batch_ = false;        // this call of train does
  std::optional<std::string> due_;  // why it is to be dismissed at the end of this step
  Time lease_ends_ = never;
  bool lease_over_ = false;  // at the last check; no step is begun or applied then
  bool evicted_ = false;
  bool leaves_ = false;  // has left, and is not dismissed
  std::string dismissed_;
  std::vector<MemberAction> outbox_;
};

}  // namespace elasticrun::worker::core
