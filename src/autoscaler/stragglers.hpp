// Which workers are slower than the others, and have been for long enough to do something about it.
//
// All members step together, so one slow worker slows all of them, and the throughput of the world
// does not tell which. What tells is the time that each spends in its own compute per sample: the
// time in collectives is waiting for others, and a slow network shows there, at all members alike,
// and never here.
//
// The score is that of Or, Zhang, Freedman (MLSys 2020): per step f = v / median(v), v the samples
// per second of compute, smoothed as e = 0.1 f + 0.9 e, a straggler where e < 0.8 after ten steps.
// Two things differ. A score must stay low for a time (`confirm`), because many slow phases are
// over within a minute and a replacement costs more than that; and each straggler is named once,
// any rank, also 0. Speeds are per sample, so unequal shares do not count as slowness. Pure.
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
  double threshold = 0.8;        // a score below it is slow
  double smoothing = 0.1;        // weight of the newest step
  std::int64_t wait_steps = 10;  // of a worker, before it is judged
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

  // A world steps, with these members. Scores of those who were members before are kept.
  void world_changed(Generation generation, const std::vector<WorkerId>& members);
  // Reports of other worlds, or without steps or samples, count for nothing.
  void observe(const WorkerSample& sample, Time now);
  // Those that are confirmed by now, each once until it is fast again or another worker.
  std::vector<Straggler> confirmed(Time now);
  // When confirmed() may say more, as far as is known now.
  Time wake_at() const;
  // 1: as fast as the median; nothing: not judged yet.
  std::optional<double> score(WorkerId worker) const;

 private:
  struct Member {
    std::optional<double> speed;  // samples/s of compute, of the last report
    double score = 1;
    std::int64_t steps = 0;  // seen of it
    Time slow_since = never;
    bool told = false;
  };
  // Reports per computed median, as a part of the members: a controller of thousands of workers
  // must not look at all speeds at each report of each of them.
  static constexpr std::size_t medians_per_round = 16;
  double median_speed() const;
  bool slow(const Member& member) const;
  void judge(WorkerId worker, Member& member, Time now);

  StragglerRule rule_;
  Generation generation_;
  IdMap<WorkerId, Member> members_;
  // Those that are slow and not told yet, by the time at which they will be.
  std::set<std::pair<Time, WorkerId>> slow_;
  double median_ = 0;             // 0: not all members have been heard
  std::size_t since_median_ = 0;  // reports
};

}  // namespace elasticrun::autoscaler
