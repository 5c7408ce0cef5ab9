// Restarts of a plain program: a failure, or a change of hosts, ends all of its workers and starts
// all of them again, with new ranks, as under torchrun.
//
// What one start of all workers leads to is a run. A run that fails is judged when the last of its
// workers has gone, for only then it is known what it died of: a worker whose peer has died may be
// the first to fail, and that a host is lost is known last of all. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "job/core/terms/slot.hpp"

namespace elasticrun::job::workers {

// Where the agent has not seen how long rank 0 takes to listen (lead.hpp).
inline constexpr Duration head_start = std::chrono::milliseconds(200);

// How a worker of a run has ended.
struct RunEnd {
  std::string worker;         // its name for the user
  std::string how;            // "exited with code 1"
  std::int64_t error_ns = 0;  // when it wrote why, by its host's clock; 0: it did not
  int code = 0;
  int signal = 0;          // 0: none
  bool with_host = false;  // its host was lost, or ended
  bool told = false;       // it was told to end
  bool obeyed = false;     // and did, or was killed when its time was up
  bool hopeless = false;   // it never ran, and another start would lead to the same
};

class Restarts {
 public:
  // After `max` failures the next one ends the job. `resizable`: runs follow the hosts, and the
  // loss of a host is no failure; else all runs have the size of the first one.
  Restarts(int max, bool resizable) : max_(max), resizable_(resizable) {}

  // The number of failures that were followed by a restart: TORCHELASTIC_RESTART_COUNT.
  int count() const { return count_; }
  int max() const { return max_; }
  bool resizable() const { return resizable_; }
  // The number of runs that have begun.
  int runs() const { return runs_; }
  // The number of workers that every run after the first has, if runs may not differ.
  std::optional<int> fixed_size() const;

  // How much later than rank 0 this rank begins. What rank 0 opens first, the others dial first,
  // and PyTorch waits for a second when it finds nobody there. Not in the first run: it may be one
  // of a program with the library.
  Duration begins_after(Rank rank) const {
    return runs_ > 1 && rank != Rank(0) ? head_start : Duration::zero();
  }

  // A run of that size begins.
  void run_begins(int size, Time now);
  // The run is being ended: what its workers do from now on is lost.
  void run_ends(Time now) { idle_since_ = now; }
  // A worker has said that it makes progress. True: it is the first one in this run.
  bool progressed(Time now);
  // The run makes progress, as far as its workers say anything about that.
  bool makes_progress() const { return makes_progress_; }
  // What a restart costs, as it was measured last: from the end of one run to the progress of the
  // next. The first run shows the part from its start.
  Duration cost() const { return cost_; }
  // Whether another run may follow one that fails in this way; judge() decides, when all workers
  // have ended.
  bool may_follow(const RunEnd& end) const;
  // Another run follows the one that is being ended, as far as is known before all its workers
  // have.
  bool will_follow() const { return !change_.empty() || count_ < max_; }
  // A worker has ended while a run is being ended, or has caused that.
  void ended(RunEnd end) { ends_.push_back(std::move(end)); }

  // The run is being ended because other hosts can be used; `why` says what has changed.
  void hosts_changed(std::string why) { change_ = std::move(why); }

  // What follows when all workers of a run have gone, which has failed or could be another one.
  struct Verdict {
    bool again = false;    // all workers are started again; else the job ends
    bool counted = false;  // among the restarts that --max-restarts limits
    bool planned = false;  // nothing failed: hosts_changed()
    std::string reason;    // who failed first, and how, or what has changed
    std::string victims;   // "2 others failed after it: rank 0, rank 2"; empty: none did
    int exit_code = 0;     // where the job ends
  };
  Verdict judge();

  // With the present slots another run would have these workers; called whenever that is looked at.
  // Hosts often come one after the other, so the run is ended when nothing has changed for
  // `settle`.
  void could_have(std::vector<SlotId> slots, Time now, Duration settle);
  void nothing_better();
  Time wake_at() const { return change_at_; }

 private:
  const RunEnd& culprit() const;
  std::string victims_of(const RunEnd& culprit) const;

  int max_;
  bool resizable_;
  int count_ = 0, runs_ = 0;
  int first_size_ = 0;
  Time idle_since_ = never;  // never: the first run has not begun
  bool makes_progress_ = false;
  Duration cost_{};
  std::vector<RunEnd> ends_;   // of this run, in order
  std::string change_;         // empty: the run ends because of a failure
  std::vector<SlotId> could_;  // as the last look found it
  Time change_at_ = never;
};

}  // namespace elasticrun::job::workers
