// The workers of a job: one row each, from the order to start it to its end.
//
// What the job knows of a worker is its state, and each state has one deadline: a starting worker
// must be ready by then, a leaving one must have ended, a stopping or dying one must be gone.
// Membership knows which workers are members of the world; the ranks here are those that it has
// reported.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/id_map.hpp"
#include "base/ids.hpp"
#include "base/time.hpp"
#include "job/core/terms/slot.hpp"
#include "job/core/terms/state_table.hpp"

namespace elasticrun::job::workers {

enum class WorkerState { ordered, running, ready, left, leaving, stopping, fenced, dying, gone };

inline constexpr std::array worker_states{
    Named<WorkerState>{WorkerState::ordered, "ordered", "the order to start it has gone out"},
    Named<WorkerState>{WorkerState::running, "running", "its process exists"},
    Named<WorkerState>{WorkerState::ready, "ready",
                       "it is in train, or was; with a rank, a member"},
    Named<WorkerState>{WorkerState::left, "left",
                       "out of the world by itself; it takes its time, and its end counts"},
    Named<WorkerState>{WorkerState::leaving, "leaving",
                       "out of the world by decision; it may end by itself"},
    Named<WorkerState>{WorkerState::stopping, "stopping", "it was told to end"},
    Named<WorkerState>{WorkerState::fenced, "fenced", "it was given up and killed"},
    Named<WorkerState>{WorkerState::dying, "dying",
                       "it does nothing more, and its memory is taken apart"},
    Named<WorkerState>{WorkerState::gone, "gone", "it has ended"},
};

enum class WorkerTurn { started, joined, leaves, dismissed, stopped, given_up, dies, ended };

inline constexpr std::array worker_turns{
    Named<WorkerTurn>{WorkerTurn::started, "its process started"},
    Named<WorkerTurn>{WorkerTurn::joined, "it is ready to train"},
    Named<WorkerTurn>{WorkerTurn::leaves, "it leaves the world by itself"},
    Named<WorkerTurn>{WorkerTurn::dismissed, "the job removes it from the world"},
    Named<WorkerTurn>{WorkerTurn::stopped, "it is told to end"},
    Named<WorkerTurn>{WorkerTurn::given_up, "it is given up"},
    Named<WorkerTurn>{WorkerTurn::dies, "its process dies"},
    Named<WorkerTurn>{WorkerTurn::ended, "its process ended"},
};

using WorkerTransition = Transition<WorkerState, WorkerTurn>;

inline constexpr std::array worker_transitions{
    WorkerTransition{WorkerState::ordered, WorkerTurn::started, WorkerState::running},
    WorkerTransition{WorkerState::ordered, WorkerTurn::joined, WorkerState::ready},
    WorkerTransition{WorkerState::ordered, WorkerTurn::leaves, WorkerState::left},
    WorkerTransition{WorkerState::ordered, WorkerTurn::dismissed, WorkerState::leaving},
    WorkerTransition{WorkerState::ordered, WorkerTurn::stopped, WorkerState::stopping},
    WorkerTransition{WorkerState::ordered, WorkerTurn::given_up, WorkerState::fenced},
    WorkerTransition{WorkerState::ordered, WorkerTurn::ended, WorkerState::gone},
    WorkerTransition{WorkerState::running, WorkerTurn::joined, WorkerState::ready},
    WorkerTransition{WorkerState::running, WorkerTurn::leaves, WorkerState::left},
    WorkerTransition{WorkerState::running, WorkerTurn::dismissed, WorkerState::leaving},
    WorkerTransition{WorkerState::running, WorkerTurn::stopped, WorkerState::stopping},
    WorkerTransition{WorkerState::running, WorkerTurn::given_up, WorkerState::fenced},
    WorkerTransition{WorkerState::running, WorkerTurn::ended, WorkerState::gone},
    WorkerTransition{WorkerState::ready, WorkerTurn::leaves, WorkerState::left},
    WorkerTransition{WorkerState::ready, WorkerTurn::dismissed, WorkerState::leaving},
    WorkerTransition{WorkerState::ready, WorkerTurn::stopped, WorkerState::stopping},
    WorkerTransition{WorkerState::ready, WorkerTurn::given_up, WorkerState::fenced},
    WorkerTransition{WorkerState::ready, WorkerTurn::dies, WorkerState::dying},
    WorkerTransition{WorkerState::ready, WorkerTurn::ended, WorkerState::gone},
    WorkerTransition{WorkerState::left, WorkerTurn::stopped, WorkerState::stopping},
    WorkerTransition{WorkerState::left, WorkerTurn::given_up, WorkerState::fenced},
    WorkerTransition{WorkerState::left, WorkerTurn::ended, WorkerState::gone},
    WorkerTransition{WorkerState::leaving, WorkerTurn::stopped, WorkerState::stopping},
    WorkerTransition{WorkerState::leaving, WorkerTurn::given_up, WorkerState::stopping},
    WorkerTransition{WorkerState::leaving, WorkerTurn::ended, WorkerState::gone},
    WorkerTransition{WorkerState::stopping, WorkerTurn::ended, WorkerState::gone},
    WorkerTransition{WorkerState::fenced, WorkerTurn::ended, WorkerState::gone},
    WorkerTransition{WorkerState::dying, WorkerTurn::ended, WorkerState::gone},
};

struct Worker {
  SlotId slot;
  WorkerState state = WorkerState::ordered;
  Time deadline = never;     // of this state
  bool left_in_call = true;  // if it has left: in a call of train
  Time ready_since = never;  // when it was first ready to train; never: it was not yet
  // In the newest world, or in the first one to come; nothing: it is in neither.
  std::optional<std::int32_t> rank{};
  std::string trouble{};   // why it was given up, or how it dies; empty: neither
  bool freed_job = false;  // after the training: it says nothing more, and trains no more

  bool is(WorkerState one) const { return state == one; }
  bool starts() const { return is(WorkerState::ordered) || is(WorkerState::running); }
  bool was_ready() const { return ready_since != never; }
  // The job wants its end: it was removed from the world, or stopped.
  bool expected() const { return is(WorkerState::leaving) || is(WorkerState::stopping); }
  // It trains no more: the job wants its end, or it left by itself.
  bool departed() const { return expected() || is(WorkerState::left); }
  // Nothing more is asked of it; its slot is free when its process has ended.
  bool doomed() const { return is(WorkerState::fenced) || is(WorkerState::dying); }
};

class Workers {
 public:
  using Rows = IdMap<WorkerId, Worker>;

  // Adds a new worker, which must be ready by that time.
  WorkerId order(SlotId slot, Time ready_by);
  void turn(WorkerId worker, WorkerTurn turn);
  // The worker is ready to train; the time of the first call is kept.
  void ready(WorkerId worker, Time now);
  // Gives a worker up, once. False: there is no such worker, or it was given up before.
  bool give_up(WorkerId worker, const std::string& trouble);
  // The worker dies in this way, and is no member any more. False: that was known.
  bool dies(WorkerId worker, const std::string& how);
  // The worker leaves by itself, in a call of train or between two, and has no deadline.
  void leaves(WorkerId worker, bool in_call);
  void frees_job(WorkerId worker);
  // True: a worker that has left by itself still runs.
  bool some_left() const;
  void set_deadline(WorkerId worker, Time at);
  void set_rank(WorkerId worker, std::optional<std::int32_t> rank);
  void clear_ranks();
  // The worker has ended, or the job does not wait for that any more.
  void erase(WorkerId worker);
  void clear();
  // The controller stood still for that time: it is added to all deadlines.
  void stood_still(Duration time);

  const Worker* find(WorkerId worker) const;
  std::vector<WorkerId> without_job() const;
  const Rows& rows() const { return rows_; }
  bool empty() const { return rows_.empty(); }
  std::optional<WorkerId> in(SlotId slot) const;
  // The workers on a host, in the order of their ids.
  std::vector<WorkerId> on(HostId host) const;
  int count(WorkerState state) const { return counts_[static_cast<std::size_t>(state)]; }
  // The number of starting and ready workers: not dismissed, not told to end, not given up, not
  // dying.
  int unstopped() const {
    return count(WorkerState::ordered) + count(WorkerState::running) + count(WorkerState::ready);
  }
  // True: some worker is starting, or was given up before it was ready and has not ended yet.
  bool any_starting() const;
  // The worker whose deadline passed first, if any has passed. Its deadline is removed.
  std::optional<WorkerId> due(Time now);
  Time wake_at() const { return deadlines_.empty() ? never : deadlines_.begin()->first; }

  // The worker was killed, but its process still hangs in the kernel of its host: it is no longer
  // part of the job, but perhaps of a world that may still step.
  void leave_stuck(WorkerId worker, HostId host) { stuck_.emplace(worker, host); }
  bool erase_stuck(WorkerId worker) { return stuck_.erase(worker) > 0; }
  std::vector<WorkerId> stuck_on(HostId host) const;
  // Whether this worker is one of that host, which may report only on its own workers.
  bool runs_on(WorkerId worker, HostId host) const;

 private:
  void enter(Worker& worker, WorkerState state);

  Rows rows_;
  std::map<SlotId, WorkerId> by_slot_;
  std::map<HostId, std::set<WorkerId>> by_host_;
  std::set<std::pair<Time, WorkerId>> deadlines_;
  std::array<int, worker_states.size()> counts_{};
  std::map<WorkerId, HostId> stuck_;
  WorkerId last_;
};

}  // namespace elasticrun::job::workers
