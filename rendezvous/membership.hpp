// Which workers are in the world, and how one world becomes the next. The heart of elasticrun, and
// pure: messages and local events in, messages and facts out, time as a parameter.
//
// Planned change: the controller sends Prepare to members and newcomers, and each of them forms the
// new group in the background. When all are prepared, it sends Go; from then on the members agree
// inside their own reductions when to switch (a number rides along with the data), so no message
// can be too late for one member and in time for another.
//
// Forced change: Abort closes all generations up to the newest. Each worker answers with its last
// committed step and commits nothing of those generations afterwards; the newest state wins, and
// the next world forms from the workers that answered. For each world that may still be stepping,
// the answer of one member is enough to be safe: the world cannot complete a reduction without that
// member. Where no member answers, the next world waits until all of them are certainly dead. So
// there are never two worlds.
//
// A failure between Prepare and the first commit has a culprit. Members complain about each other,
// and the workers to blame (complaints.hpp) are left out of the next attempt: newcomers at once,
// members only after repeated failures.
//
// Why not a consensus protocol: there is one controller, and what must agree is in the data
// already.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/id_map.hpp"
#include "base/ids.hpp"
#include "base/time.hpp"
#include "rendezvous/complaints.hpp"
#include "rendezvous/exchange.hpp"
#include "rendezvous/membership_events.hpp"
#include "rendezvous/rank_table.hpp"
#include "rendezvous/transfer_watch.hpp"
#include "wire/messages.hpp"

namespace elasticrun::rendezvous {

struct MembershipOptions {
  int minimum = 1;                                      // until Wanted says otherwise
  Duration abort_timeout = std::chrono::seconds(10);    // from Abort to Answer
  Duration prepare_timeout = std::chrono::seconds(30);  // from Prepare to Prepared
  // Longest time without a byte of the state moved while all wait for it (transfer_watch.hpp).
  Duration transfer_timeout = std::chrono::seconds(30);
};

class Membership {
 public:
  explicit Membership(MembershipOptions options) : options_(std::move(options)) {
    wanted_.minimum = options_.minimum;
  }

  std::vector<Action> step(const Event& event, Time now);
  Time wake_at() const;

  // True: nothing is being prepared, entered or torn down, so a Change would be accepted.
  bool quiet() const { return !forming_ && !aborting_; }
  bool running() const { return running_ && !forming_ && !aborting_; }
  // A world steps, whatever is being prepared beside it.
  bool steps() const { return running_ && !aborting_; }
  // A world is being torn down: a worker that hangs up now does so because of the Abort.
  bool aborting() const { return aborting_.has_value(); }
  bool ever_formed() const { return state_born_; }
  // All members of the world that was entered last have left by themselves.
  bool all_left() const { return entered_ && entered_->empty(); }
  // Members of this world step in it, or form it.
  bool under_way(Generation generation) const {
    return (running_ && running_->world.generation == generation) ||
           (forming_ && forming_->world.generation == generation);
  }
  // Someone holds the state, or may: who has not answered an Abort yet, or receives it now.
  bool state_is_held() const;
  // While no world runs or comes: a worker in a call of train with the newest state.
  std::optional<WorkerId> idle_holder() const;
  // In rank order: those of the running world, or those that wait for the next one.
  std::vector<WorkerId> members() const { return rank_table_.order(); }
  std::size_t size() const { return rank_table_.size(); }
  // True: there are members, and the one with the first rank is in train and not released.
  bool first_is_training() const { return size() > 0 && is_training(rank_table_.first()); }
  bool is_member(WorkerId worker) const;
  // The newest call of train whose batch is in the plan of the world that members step in.
  std::int64_t planned_call() const {
    return forming_ && (forming_->going || !running_) ? forming_->named_call
           : running_                                 ? running_->named_call
                                                      : named_call_;
  }
  // True: the worker is in the world that was sent Go, if one is being entered; otherwise in the
  // present one.
  bool may_step(WorkerId worker) const;
  // True: the worker is out of the world, but keeps its state until the new world has stepped.
  bool is_leaving(WorkerId worker) const;
  // True: the worker is in train and not released, so its end now would be a failure.
  bool is_training(WorkerId worker) const;
  Generation generation() const { return last_; }
  // The newest world that may have stepped: the last one that was sent Go.
  Generation stepping() const { return went_.generation; }
  // The worker's rank in that world; nullopt: it is not in it.
  std::optional<std::int32_t> rank_of(WorkerId worker) const;

 private:
  // More than this many attempts that fail in a row, over failing_min: a member is given up.
  static constexpr int failed_forms_max = 5;
  static constexpr Duration failing_min = std::chrono::seconds(1);
  // Pause between attempts, from the third attempt on.
  static constexpr Duration form_pause_min = std::chrono::milliseconds(25);
  static constexpr Duration form_pause_max = std::chrono::seconds(1);

  struct Peer {
    HostId host;
    std::int32_t slot = 0;
    bool left = false;
    bool settled = false;  // has been in a world that stepped; false: a newcomer
    wire::TrainSpec train;
    StepId committed = no_state;  // as of its last Answer
  };
  struct Forming {
    wire::World world;
    std::optional<ChangeId> change;
    RankTable rank_table;           // of the new world
    std::vector<WorkerId> leavers;  // members of the old world that are not in the new one
    bool at_once = false;           // no other world is running meanwhile
    bool going = false;             // Go was sent
    bool committed = false;         // a member has reported its first step
    std::int64_t named_call = 0;    // the newest call of train whose batch is in the plan
    Exchange exchange;
    IdMap<WorkerId, Rank> ranks;    // of the members
    std::set<WorkerId> unprepared;  // members and leavers that have not sent Prepared
    std::set<WorkerId> entered;     // members that have sent Entered
    Time since{}, deadline{};
    WorldFormed report;
  };
  // A world that may still be stepping, until one of its members has answered the Abort.
  struct OpenWorld {
    IdMap<WorkerId, Time> dead_by;  // for each member, as in WorkerGone
    bool closed = false;            // a member has answered: it takes no more steps
  };
  struct Aborting {
    Generation up_to;                 // newest generation to be closed
    std::vector<WorkerId> newcomers;  // of a world that not all had entered, or that never stepped
    std::vector<WorkerId> leavers;    // of a world that not all had entered
    bool stalled = false;             // no progress in time, and no worker is known to be at fault
    bool somebody_died = false;       // a worker is gone
    bool stepless = false;            // a member broke the group before the world's first step
    bool hearsay = false;             // the reason is a closed connection; no death is reported yet
    bool ends_step = false;           // the others first end what the worker that left has ended
    WorkerId messenger;               // first worker to report the group broken; 0: none did
    std::set<WorkerId> waiting;       // workers that have not answered
    std::vector<WorkerId> giving;     // workers that keep their groups open until all have
    Time deadline{};                  // for the answers
    Time form_at{};                   // form no earlier: a pause after repeated failures
    std::vector<OpenWorld> open_worlds;
  };
  struct Running {
    wire::World world;
    bool committed = false;       // has completed at least one step
    std::int64_t named_call = 0;  // as of Forming
  };

  void on(const WorkerUp&, Time now);
  void on(const WorkerGone&, Time now);
  void on(const WorkerMessage&, Time now);
  void on(const Change&, Time now);
  void on(const Wanted& wanted, Time now);
  void on(const Stuck& stuck, Time now);
  void on(const PlanMade& made, Time);
  void on(const Restore& restore, Time now);
  void on(const Dissolve& dissolve, Time);
  void on(const StoodStill& stood, Time);
  void on(const Tick&, Time now);

  void hear(WorkerId, const wire::Join&, Time) const {}
  void hear(WorkerId, const wire::Ready&, Time now);
  void hear(WorkerId, const wire::Publish&, Time now);
  void hear(WorkerId, const wire::Prepared&, Time now);
  void hear(WorkerId, const wire::PrepareFailed&, Time now);
  void hear(WorkerId, const wire::Answer&, Time now);
  void hear(WorkerId, const wire::Entered&, Time now);
  void hear(WorkerId, const wire::Committed&, Time now);
  void hear(WorkerId, const wire::Broken&, Time now);
  void hear(WorkerId, const wire::Saved&, Time) const {}
  void hear(WorkerId, const wire::Unreadable&, Time) const {}
  void hear(WorkerId, const wire::Sample&, Time now);
  void hear(WorkerId, const wire::StepSamples&, Time) const {}
  void hear(WorkerId, const wire::Diverged&, Time) const {}
  void hear(WorkerId, const wire::Done&, Time now);
  void hear(WorkerId, const wire::Leave&, Time now);

  void form(RankTable rank_table, std::vector<WorkerId> leavers, std::optional<ChangeId> change,
            std::string reason, Time now);
  bool waits_for_silent(WorkerId worker, const wire::PrepareFailed& failed, Time now) const;
  void preparation_overdue(Time now);
  void transfer_overdue(Time now);
  void give_up(const std::vector<WorkerId>& workers, const std::string& why, Time now);
  bool mark_holders(std::vector<wire::Member>& members) const;
  void cancel(const std::string& why);
  void start_abort(const std::string& reason, Time now, const wire::Leave* left = nullptr);
  void lose(const WorkerGone& gone, Time now, const wire::Leave* left = nullptr);
  void add_open_world(const wire::World& world);
  void note_dead(const WorkerGone& gone);
  Time safe_at() const;
  void maybe_finish_abort(Time now);
  // blame.cpp
  void note(WorkerId from, Generation generation, const std::vector<wire::Complaint>& complaints);
  std::vector<WorkerId> newcomers_of(const wire::World& world) const;
  std::vector<WorkerId> newcomers_of(const Forming& forming) const;
  void count_failure(Time now);
  bool failed_too_often(Time now) const;
  Duration form_pause() const;
  WorkerId only_holder() const;
  void leave_out(WorkerId worker, std::string why);
  std::set<WorkerId> settle_complaints(const Aborting& aborted, Time now);

  void fill_up(RankTable& rank_table, const std::set<WorkerId>& left_out) const;
  RankTable survivors(const Aborting& aborted, const std::set<WorkerId>& left_out) const;
  void form_from_survivors(const Aborting& aborted, Time now);
  void form_or_wait(Time now);
  bool some_peer_has_state() const;
  bool state_is_lost() const;
  void world_entered();
  void note_entered(const wire::World& world);
  void plan_again_if_due(Time now);
  void first_commit(StepId step);
  void dismiss_leavers(const std::string& why);
  void maybe_release();
  bool in_forming(WorkerId worker) const;
  bool anybody_training() const;
  std::vector<WorkerId> participants() const;

  template <class Message>
  void send(std::vector<WorkerId> to, Message message) {
    if (!to.empty()) outbox_.push_back(ToMembers{std::move(to), std::move(message)});
  }

  MembershipOptions options_;
  IdMap<WorkerId, Peer> peers_;
  std::set<WorkerId> training_;  // peers between Ready and Release
  std::int64_t named_call_ = 0;  // the newest call of train whose batch is known
  bool plan_outdated_ = false;   // a member has named its batch since its world was planned
  RankTable rank_table_;
  std::optional<Running> running_;
  std::optional<Forming> forming_;
  std::optional<Aborting> aborting_;
  std::vector<WorkerId> left_;     // by themselves; peers may still need their groups
  std::set<WorkerId> leaving_;     // not in the running world; wait for its first commit
  std::string abort_reason_;       // why the next forced world forms
  Generation last_;                // newest allocated
  wire::World went_;               // newest world that was sent Go
  bool state_born_ = false;        // Go was sent once: from here on state can be lost
  StepId newest_seen_ = no_state;  // in any message, ever
  Restore restore_;
  bool closed_by_answer_ = true;        // an answer has closed each world that may have stepped
  bool incomplete_ = false;             // a worker left the world between two calls of train
  // Members of the world entered last that have not left by themselves; nothing: no world was.
  std::optional<std::set<WorkerId>> entered_;
  std::int64_t released_call_ = 0;      // newest call of train that was released
  IdMap<WorkerId, std::int64_t> done_;  // workers that sent Done since then, and for which call
  int failed_forms_ = 0;                // in a row, of worlds that formed at once or were entered
  Time failing_since_{};                // time of the first of these failures
  Complaints complaints_;               // since the last world began to form
  TransferWatch transfer_;              // into the world that was sent Go
  Wanted wanted_;
  std::vector<Action> outbox_;
};

}  // namespace elasticrun::rendezvous
