// Finds workers that are slower than the others and have been for long enough to act on it.
//
// All members step together, so one slow worker slows all of them, and the throughput of the world
// does not show which one. The time that each spends in its own compute per sample does: time in
// collectives is spent waiting for others, so a slow network shows there, in all members alike, and
// not in the compute time.
//
// The score is that of Or, Zhang, Freedman (MLSys 2020): per step f = v / median(v), v the samples
// per second of compute, smoothed as e = 0.1 f + 0.9 e, a straggler where e < 0.8 after ten steps.
// Two things differ. A score must stay low for a time (`confirm`), because many slow phases are
// over within a minute and a replacement costs more than that; and each straggler is reported once,
// whatever its rank, rank 0 included. Speeds are per sample, so unequal shares do not count as
// slowness. This class has no clock, thread or I/O.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "autoscaler/samples.hpp"
#include "base/id_map.hpp"
#include "base/ids.hpp"
#include "base/time.hpp"

namespace elasticrun::autoscaler {

struct StragglerRule {
  double threshold = 0.8;        // a worker with a score below this is slow
  double smoothing = 0.1;        // weight of the newest step
  std::int64_t wait_steps = 10;  // steps of a worker before it is judged
  Duration confirm = std::chrono::seconds(30);
};

struct Straggler {
  WorkerId worker;
  double score = 0;  // its speed against the median of the world, smoothed
  Duration slow_for{};
};

class Stragglers {
 public:
  explicit Stragglers(const StragglerRule& rule) : rule_(rule) {}

  // A new world begins to step, with these members. Workers that were members before keep their
  // scores.
  void world_changed(Generation generation, const std::vector<WorkerId>& members);
  // Takes a report. Reports of other worlds, or without steps or samples, are ignored.
  void observe(const WorkerSample& sample, Time now);
  // Stragglers confirmed by now. Each is returned once, and again only after it has been fast.
  std::vector<Straggler> confirmed(Time now);
  // The next time at which confirmed() may return a straggler, as far as is known now.
  Time wake_at() const;
  // The score of a worker; 1: as fast as the median; nothing: not judged yet.
  std::optional<double> score(WorkerId worker) const;

 private:
  struct Member {
    std::optional<double> speed;  // samples/s of compute in the last report
    double score = 1;
    std::int64_t steps = 0;  // steps reported
    Time slow_since = never;
  };
  // The median is computed this many times while each member reports once: a controller of
  // thousands of workers must not go through all speeds at every report.
  static constexpr std::size_t medians_per_round = 16;
  double median_speed() const;
  bool slow(const Member& member) const;
  void judge(WorkerId worker, Member& member, Time now);

  StragglerRule rule_;
  Generation generation_;
  IdMap<WorkerId, Member> members_;
  // Slow workers that confirmed() has not returned yet, by the time at which they are confirmed.
  std::set<std::pair<Time, WorkerId>> slow_;
  double median_ = 0;             // median speed, samples/s; 0: some members have not reported yet
  std::size_t since_median_ = 0;  // reports since median_ was computed
};

}  // namespace elasticrun::autoscaler
