// From what single workers report to the throughput of each size the job has run at.
//
// All members commit the same steps, each counts only its own share, and they report at different
// moments. So reports are collected into *rounds*: a round is whole when every member has
// reported since the last one. Its batch is the sum of the shares per step, its step time the
// median of the members' (in lockstep they agree; the median keeps one bad clock out), and the
// throughput their quotient: global samples committed by wall time. Dividing the sum of all samples
// by the time between two arrivals would be simpler, but counts network delay, pauses between
// epochs and missing reports as slowness.
//
// A running average over all time, as Or et al. (MLSys 2020) keep, never forgets a slow phase. Here
// each visit of a size begins anew and keeps its last rounds only, and the estimate is the mean
// of their middle half, which a straggling round does not move.
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

// What one worker says about the steps it has committed since it last said something.
struct WorkerSample {
  WorkerId worker;
  Generation generation;
  Step step;                        // last committed
  std::int64_t steps = 0;           // 0: nothing committed, the report is only a sign of life
  std::int64_t samples = 0;         // of this worker, in those steps
  Duration wall{};                  // of those steps
  Duration compute{};               // of it, inside the program's compute
  std::optional<Noise> noise = {};  // of the gradients, as far as this worker tells
};

// Figures that no worker can have between two reports: a counter overflowed, or a clock jumped.
// Sums of such reports would overflow, too.
bool implausible(const WorkerSample& sample);

// One round, put together.
struct WorldSample {
  Generation generation;
  Step step;
  int size = 0;
  std::int64_t steps = 0;
  double samples_per_s = 0;
  double batch = 0;  // mean global batch of the round's steps
  Duration step_time{};
  Duration compute_time{};   // per step, the median of the members'
  Duration least_compute{};  // of the members'
  Duration most_compute{};
  std::optional<Noise> noise = {};  // the newest that a worker has told
};

// What is known about one size with one global batch, from the last visit to it.
struct Measure {
  int size = 0;
  std::int64_t global_batch = 0;  // as planned; 0: unknown
  double samples_per_s = 0;
  double error = 0;          // standard error of the above, relative
  double compute_share = 0;  // part of the step time inside compute; 0: not known
  std::int64_t steps = 0;
  int rounds = 0;
  int visits = 0;
  int shares = 0;  // visits that only gave the members of the one before other shares
  Time at{};       // when the last round ended
  // Of all visits, every round counted alike and none forgotten.
  std::int64_t all_steps = 0;
  double all_samples_per_s = 0;
};

class Window {
 public:
  // Rounds kept per size.
  static constexpr std::size_t capacity = 64;

  // A world steps from now on. A visit begins even when the size is the old one: with other
  // workers in it the old figures are not its own.
  void world_changed(Generation generation, int size, std::int64_t global_batch);
  // That world has the members of the one before, with other shares.
  void shares_changed() { ++visit().measure.shares; }
  // While processes start and groups form in the background, steps are not what they would be.
  void change_started();
  void change_ended();
  // The round this report completed, if it did. A report of another world, of a time of change,
  // the first one of a worker after that, or one that makes no sense, counts for nothing.
  std::optional<WorldSample> add(const WorkerSample& sample, Time now);
  // A round that somebody else has put together (a simulator that has a world and no workers),
  // under the same rules. Whether it counted.
  bool add(const WorldSample& round, Time now);

  // Sizes with at least one round, in order of size and batch.
  std::vector<Measure> curve() const;

 private:
  // Whole numbers up to 2^53 are exact here, and a sum over any time does not overflow.
  struct Sum {
    std::int64_t reports = 0;
    double steps = 0;
    double samples = 0;
    double wall_ns = 0;
    double compute_ns = 0;
  };
  struct Visit {
    std::deque<double> rates;  // samples/s, one per round, the last `capacity`
    Measure measure;           // of them
    double wall_s = 0;         // of this visit
    double compute_s = 0;
    double all_wall_s = 0;  // of all visits
    double all_samples = 0;
  };

  Visit& visit() { return visits_[{size_, global_batch_}]; }
  void begin();
  bool round_is_whole(const Sum& latest) const;
  std::optional<WorldSample> close_round(Step step, Time now);
  void keep(const WorldSample& round, Time now);

  Generation generation_;
  Step newest_ = no_state;  // that a member of that world has reported
  int size_ = 0;
  std::int64_t global_batch_ = 0;
  bool changing_ = false;
  // Of workers that have reported since the last change, and what of them belongs to this round.
  IdMap<WorkerId, Sum> reports_;
  int reported_ = 0;                                      // in this round
  std::map<std::pair<int, std::int64_t>, Visit> visits_;  // by size and global batch
};

}  // namespace elasticrun::autoscaler
