// Turns the reports of single workers into the throughput of each size the job has run at.
//
// All members commit the same steps, each counts only its own share, and they report at different
// times. So reports are collected into *rounds*: a round is whole when every member has reported
// since the last one. Its batch is the sum of the members' samples per step, its step time is the
// median of the members' (in lockstep they agree; the median keeps one bad clock out), and its
// throughput is batch / step time: global samples committed per wall time. Dividing the sum of all
// samples by the time between two arrivals would be simpler, but would count network delay, pauses
// between epochs and missing reports as slowness.
//
// A running average over all time, as Or et al. (MLSys 2020) keep, never forgets a slow phase. Here
// each visit to a size starts with no rounds and keeps only its last ones, and the estimate is the
// mean of their middle half, which a single slow round does not move.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "autoscaler/noise.hpp"
#include "base/id_map.hpp"
#include "base/ids.hpp"
#include "base/time.hpp"

namespace elasticrun::autoscaler {

// A worker's report about the steps it has committed since its previous report.
struct WorkerSample {
  WorkerId worker;
  Generation generation;
  StepId step;                      // last committed
  std::int64_t steps = 0;           // 0: nothing committed, the report is only a sign of life
  std::int64_t samples = 0;         // samples of this worker in those steps
  Duration wall{};                  // wall time of those steps
  Duration compute{};               // the part of `wall` inside the program's compute
  std::optional<Noise> noise = {};  // gradient noise, if this worker reports it
};

// Whether the report has values that no worker can reach between two reports: a counter overflowed,
// or a clock jumped. Sums of such reports would overflow as well.
bool implausible(const WorkerSample& sample);

// The result of one round.
struct WorldSample {
  Generation generation;
  StepId step;
  int size = 0;
  std::int64_t steps = 0;
  double samples_per_s = 0;
  double batch = 0;  // mean global batch of the round's steps
  Duration step_time{};
  Duration compute_time{};   // per step, the median over the members
  Duration least_compute{};  // per step, of the member with the least
  Duration most_compute{};
  std::optional<Noise> noise = {};  // the newest gradient noise that a worker has reported
};

// What the last visit to a size with a given global batch has measured.
struct Measure {
  int size = 0;
  std::int64_t global_batch = 0;  // as planned; 0: unknown
  double samples_per_s = 0;
  double error = 0;          // relative standard error of samples_per_s
  double compute_share = 0;  // part of the step time inside compute; 0: not known
  std::int64_t steps = 0;
  int rounds = 0;
  int visits = 0;
  int shares = 0;  // visits that differ from the one before only in the members' shares
  Time at{};       // when the last round ended
  // Over all visits; every round counts alike and none is forgotten.
  std::int64_t all_steps = 0;
  double all_samples_per_s = 0;
};

class Window {
 public:
  // Rounds kept per size.
  static constexpr std::size_t capacity = 64;

  // A new world begins to step. A new visit begins even when the size is unchanged: with other
  // workers in it the old measures do not apply.
  void world_changed(Generation generation, int size, std::int64_t global_batch);
  // The new world has the same members as the one before but other shares.
  void shares_changed() { ++visit().measure.shares; }
  // Reports during a change are ignored: while processes start and groups form in the background,
  // step times are not typical.
  void change_started();
  void change_ended();
  // Takes a report; returns the round that it completed, if it completed one. A report is ignored
  // if it is from another world, from the time of a change, the first one of its worker after a
  // change, or implausible.
  std::optional<WorldSample> add(const WorkerSample& sample, Time now);
  // Takes a round computed elsewhere (by a simulator, which has worlds and no workers), under the
  // same rules. Returns whether it counted.
  bool add(const WorldSample& round, Time now);

  // The measures with at least one round, sorted by size and batch.
  std::vector<Measure> curve() const;

 private:
  // Sums of one worker's reports. In double, whole numbers up to 2^53 are exact, and a sum over any
  // time does not overflow.
  struct Sum {
    std::int64_t reports = 0;
    double steps = 0;
    double samples = 0;
    double wall_ns = 0;
    double compute_ns = 0;
  };
  struct Visit {
    std::deque<double> rates;  // samples/s, one per round, the last `capacity`
    Measure measure;           // computed from `rates`
    double wall_s = 0;         // in this visit
    double compute_s = 0;
    double all_wall_s = 0;  // in all visits
    double all_samples = 0;
  };

  Visit& visit() { return visits_[{size_, global_batch_}]; }
  void begin();
  bool round_is_whole(const Sum& latest) const;
  std::optional<WorldSample> close_round(StepId step, Time now);
  void keep(const WorldSample& round, Time now);

  Generation generation_;
  StepId newest_ = no_state;  // the newest step a member of this generation has reported
  int size_ = 0;
  std::int64_t global_batch_ = 0;
  bool changing_ = false;
  // Workers that have reported since the last change, with their sums for the present round.
  IdMap<WorkerId, Sum> reports_;
  int reported_ = 0;                                      // workers with reports in this round
  std::map<std::pair<int, std::int64_t>, Visit> visits_;  // by size and global batch
};

}  // namespace elasticrun::autoscaler
