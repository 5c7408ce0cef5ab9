// Who is in the world, and how one world becomes the next. The heart of elasticrun, and pure:
// messages and local events in, messages and facts out, time as a parameter.
//
// Planned: Prepare to members and newcomers; each forms the new group in the background; when all
// are prepared, Go; from then on the members agree inside their own reductions when to switch (a
// number that rides along), so no message can come too late for one and in time for another.
//
// Forced: Abort up to the newest generation; everybody answers with its last committed step and
// commits nothing of those generations afterwards; the newest state wins and the next world forms
// from who answered. One member of each world that may still be stepping among them makes this
// safe: a world cannot complete a reduction without it. Where none answers, the next world waits
// until all of them are certainly dead, so there are never two worlds.
//
// From Prepare to the first commit a failure is somebody's fault: members complain about each
// other, and whoever is to blame (complaints.hpp) is left out of the next attempt, newcomers at
// once and members when it has failed again and again.
//
// Why not a consensus protocol: there is one controller, and what must agree is in the data
// already.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/id_map.hpp"
#include "base/ids.hpp"
#include "base/time.hpp"
#include "rendezvous/complaints.hpp"
#include "rendezvous/exchange.hpp"
#include "rendezvous/rank_table.hpp"
#include "rendezvous/transfer_watch.hpp"
#include "wire/messages.hpp"

namespace elasticrun::rendezvous {

// ---------------------------------------------------------------- events

struct WorkerUp {
  WorkerId worker;
  HostId host;
  std::int32_t slot = 0;
};
// Exited, fenced, or on a host that is lost. From `dead_by` on it certainly steps no more; never:
// not known yet, it comes again with a time when it is.
struct WorkerGone {
  WorkerId worker;
  std::string reason;
  Time dead_by{};
};
struct WorkerMessage {
  WorkerId from;
  wire::FromWorker text;
};
// One requested change of the world. Without a running world it forms one from who is there. One
// that names nobody gives the same members another plan.
struct Change {
  ChangeId id;
  std::vector<WorkerId> add;     // must be ready; first world: in rank order
  std::vector<WorkerId> remove;  // must be members
  std::string reason;
};
// How many workers a forced world may have, unless more survive, how many it needs, and who may
// fill it up, in this order. Holds until the next one.
struct Wanted {
  int size = 0;
  int minimum = 1;
  std::vector<WorkerId> reserves;  // no members; those that are not ready do not count
};
// A reduction of this generation has taken too long, and no member is to be blamed for it.
struct Stuck {
  WorkerId worker;  // who has waited longest
  Generation generation;
  std::string reason;
};
// The answer to PlanWanted: how the samples of a step are shared out in that world.
struct PlanMade {
  Generation generation;
  wire::BatchPlan plan;
};
// The controller stood still for that time: no deadline of others has run.
struct StoodStill {
  Duration time{};
};
struct Tick {};
using Event = std::variant<WorkerUp, WorkerGone, WorkerMessage, Change, Wanted, Stuck, PlanMade,
                           StoodStill, Tick>;

// ---------------------------------------------------------------- what comes out

// One message, which may be for many.
struct ToMembers {
  std::vector<WorkerId> to;
  wire::ToWorker message;
};
// It did not answer in time: kill it, then report it gone.
struct Fence {
  WorkerId worker;
  std::string reason;
};
// A newcomer because of which a world could not be formed or entered. It stays ready.
struct LeftOut {
  WorkerId worker;
  std::string reason;  // names the link
};
struct BecameReady {
  WorkerId worker;
  wire::TrainSpec train;
};
// A world of these members, in rank order, is about to be prepared; it waits for its plan.
struct PlanWanted {
  Generation generation;
  std::vector<wire::Member> members;
};
struct WorldFormed {
  wire::World world;
  bool planned = false;
  Step step;                     // from which it goes on
  std::int64_t idle_ns = -1;     // longest of the survivors; -1: there were none
  std::int64_t transfer_ns = 0;  // longest
  std::uint64_t transfer_bytes = 0;
  Duration prepare{};  // Prepare to Go
  std::string way;     // what carries the group and how it was formed
  int strangers = 0;   // who tried to take a member's place while it was formed
};
struct ChangeEnded {
  // Overtaken: by a loss in the world, which says nothing against the change.
  enum class How { done, refused, overtaken };
  ChangeId id;
  How how = How::done;
  std::string reason;  // why not, when not done
};
// A world stepped for the first time, so its leavers were dismissed.
struct WorldCommitted {
  Generation generation;
  Step step;
  std::vector<WorkerId> dismissed;
};
// All members used up the samples of this call of train.
struct Trained {
  std::int64_t call = 0;
  Step step;
};
struct WorkerLeft {
  WorkerId worker;
  std::string reason;
};
// The group is being torn down because of this.
struct WorldBroken {
  Generation generation;
  std::string reason;
};
// No world: fewer than the minimum are here. Changes that add workers are welcome.
struct BelowMinimum {
  int have = 0;
  int need = 0;
};
struct StateLost {
  std::string reason;
};
using Action =
    std::variant<ToMembers, Fence, LeftOut, BecameReady, PlanWanted, WorldFormed, ChangeEnded,
                 WorldCommitted, Trained, WorkerLeft, WorldBroken, BelowMinimum, StateLost>;

struct MembershipOptions {
  int minimum = 1;                                      // until Wanted says otherwise
  Duration abort_timeout = std::chrono::seconds(10);    // Abort to Answer
  Duration prepare_timeout = std::chrono::seconds(30);  // Prepare to Prepared
  // Without a byte of the state moved, while all wait for it (transfer_watch.hpp).
  Duration transfer_timeout = std::chrono::seconds(30);
};

class Membership {
 public:
  explicit Membership(MembershipOptions options) : options_(std::move(options)) {
    wanted_.minimum = options_.minimum;
  }

  std::vector<Action> step(const Event& event, Time now);
  Time wake_at() const;

  // Nothing is being prepared, entered or torn down: a change would be taken up.
  bool quiet() const { return !forming_ && !aborting_; }
  bool running() const { return running_ && !forming_ && !aborting_; }
  // A world is being torn down: who hangs up was told to.
  bool aborting() const { return aborting_.has_value(); }
  bool ever_formed() const { return state_born_; }
  // In rank order: the running world, or who waits for one with its state.
  std::vector<WorkerId> members() const { return rank_table_.order(); }
  std::size_t size() const { return rank_table_.size(); }
  // The member of the first rank, where there are members, is in train and not released.
  bool first_is_training() const {
    return !rank_table_.empty() && is_training(rank_table_.first());
  }
  bool is_member(WorkerId worker) const;
  // In a world that has stepped, or in one that was told to go.
  bool may_step(WorkerId worker) const;
  // Out of the world, but keeps its state until that has stepped.
  bool is_leaving(WorkerId worker) const;
  // In train and not released: its end now would be a failure.
  bool is_training(WorkerId worker) const;
  Generation generation() const { return last_; }
  // The newest world that may have stepped.
  Generation stepping() const { return went_.generation; }
  // In that world.
  std::optional<std::int32_t> rank_of(WorkerId worker) const;

 private:
  // A member is given up when so many attempts in a row have failed, over at least that time.
  static constexpr int failed_forms_max = 5;
  static constexpr Duration failing_min = std::chrono::seconds(1);
  // Between attempts, from the third on.
  static constexpr Duration form_pause_min = std::chrono::milliseconds(25);
  static constexpr Duration form_pause_max = std::chrono::seconds(1);

  struct Peer {
    HostId host;
    std::int32_t slot = 0;
    bool left = false;
    bool settled = false;  // has been in a world that stepped; else it is a newcomer
    wire::TrainSpec train;
    Step committed = no_state;  // as of its last Answer
  };
  struct Forming {
    wire::World world;
    std::optional<ChangeId> change;
    RankTable rank_table;  // as they will be
    std::vector<WorkerId> leavers;
    bool at_once = false;
    bool going = false;
    bool committed = false;
    Exchange exchange;
    IdMap<WorkerId, Rank> ranks;    // of its members
    std::set<WorkerId> unprepared;  // members and leavers that are
    std::set<WorkerId> entered;
    Time since{}, deadline{};
    WorldFormed report;
  };
  // A world that steps unless a member of it says no.
  struct Suspect {
    IdMap<WorkerId, Time> dead_by;  // of its members
    bool closed = false;            // one has answered
  };
  struct Aborting {
    Generation up_to;
    std::vector<WorkerId> newcomers;  // of a world that was never entered whole, or never stepped
    std::vector<WorkerId> leavers;    // of that world
    bool stood_still = false;         // a deadline has passed, and nobody has complained
    bool somebody_died = false;
    bool hearsay = false;  // what is known is a closed connection; the one who died is not heard of
    WorkerId messenger;    // who said first that the group is broken; 0: nobody did
    std::set<WorkerId> waiting;  // for their answers
    Time deadline{};             // of the answers
    Time form_at{};              // not before then, when it has failed again and again
    std::vector<Suspect> suspects;
  };
  struct Running {
    wire::World world;
    bool committed = false;  // at least once
  };

  void on(const WorkerUp&, Time now);
  void on(const WorkerGone&, Time now);
  void on(const WorkerMessage&, Time now);
  void on(const Change&, Time now);
  void on(const Wanted& wanted, Time) { wanted_ = wanted; }
  void on(const Stuck& stuck, Time now);
  void on(const PlanMade& made, Time);
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
  void start_abort(const std::string& reason, Time now);
  void suspect(const wire::World& world);
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

  RankTable survivors(const Aborting& aborted, const std::set<WorkerId>& left_out) const;
  void form_from_survivors(const Aborting& aborted, Time now);
  bool state_is_lost() const;
  void world_entered();
  void first_commit(Step step);
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
  std::set<WorkerId> training_;  // of these: between Ready and Release
  RankTable rank_table_;
  std::optional<Running> running_;
  std::optional<Forming> forming_;
  std::optional<Aborting> aborting_;
  std::set<WorkerId> leaving_;          // out of the running world, until it has committed once
  std::string abort_reason_;            // why the next forced world forms
  Generation last_;                     // newest allocated
  wire::World went_;                    // newest that was told to go
  bool state_born_ = false;             // a world was told to go: from here on state can be lost
  Step newest_seen_ = no_state;         // in any message, ever
  bool closed_by_answer_ = true;        // every world that ever stepped
  bool incomplete_ = false;             // somebody left the world between two calls of train
  std::int64_t released_call_ = 0;      // of train, the newest
  IdMap<WorkerId, std::int64_t> done_;  // who has said Done since then, of which call
  int failed_forms_ = 0;                // in a row, of worlds that formed at once or were entered
  Time failing_since_{};                // the first of them
  Complaints complaints_;               // since the last world began to form
  TransferWatch transfer_;              // into the world that was told to go
  Wanted wanted_;
  std::vector<Action> outbox_;
};

}  // namespace elasticrun::rendezvous
