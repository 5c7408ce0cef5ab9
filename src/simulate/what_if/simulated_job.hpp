// One simulated job in progress (what_if.hpp): its present state, and what happens to it.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autoscaler/autoscaler.hpp"
#include "autoscaler/shares.hpp"
#include "autoscaler/stragglers.hpp"
#include "base/rng.hpp"
#include "simulate/queue.hpp"
#include "simulate/what_if/fleet.hpp"
#include "simulate/what_if/one_size.hpp"
#include "simulate/what_if/what_if.hpp"

namespace elasticrun::simulate::what_if {

// Seconds as a Duration, capped at about thirty years: a step that never ends must not overflow.
inline Duration from_seconds(double s) {
  constexpr double most = 1e9;
  return Duration(std::llround(std::min(s, most) * 1e9));
}

class SimulatedJob {
 public:
  SimulatedJob(const Curve& curve, const Conditions& conditions, const Question& question,
               autoscaler::Autoscaler scaler);
  Outcome run(int start);

 private:
  bool good(int size) const { return worths_.at(size) >= 0.95; }
  int size() const { return static_cast<int>(fleet_.members().size()); }
  double left() const { return curve_.samples() - learned_; }
  bool goes_on() const {
    return left() > 0 && now_ - Time{} < conditions_.limit && !fleet_.members().empty();
  }
  void note(std::string text);

  // ---- time and steps
  void pass(Duration time);
  void world();
  void pace();
  double noise(double steps);
  double learned_of_a_sample() const;
  void round();

  // ---- decisions and staffing (what_if.cpp)
  autoscaler::Decision decided();
  void decide();
  void hear(const autoscaler::Forecast& forecast, bool alone);
  std::optional<bool> met() const;
  void staff();
  void settle(bool settled);
  Duration between(const Span& span);
  void ready(WorkerId worker);
  void rebatch();
  void change(std::vector<WorkerId> members);

  // ---- failures of hosts (failure_injector.cpp)
  // A failure of `host`; `chance` is a random number in [0, 1) for anything else it has to draw.
  using Failure = void (SimulatedJob::*)(int host, double chance);
  void await(Rng& rng, double per_hour, Failure failure);
  const std::string& name(int host) const {
    return curve_.hosts()[static_cast<std::size_t>(host)].name;
  }
  void fail(int host, double chance);
  void revoke(int host, double chance);
  void go(int host, Duration notice, std::string_view how);
  void gone(int host);
  void slow(int host, double chance);
  bool hosts_are_slow() const { return conditions_.slow_per_hour > 0; }
  std::vector<autoscaler::Member> typed_members() const;
  void watch();
  void report_compute();
  void replace_stragglers();
  bool better_shares();

  const Curve& curve_;
  const Conditions& conditions_;
  const Question& question_;
  const std::map<int, double> worths_;
  autoscaler::Autoscaler scaler_;
  autoscaler::Stragglers stragglers_{autoscaler::StragglerRule{}};
  autoscaler::Shares shares_;
  // Each kind of random event has a stream of its own, so that one more draw in one stream does not
  // shift another. Neighbouring seeds must not give similar streams.
  Rng noise_;
  Rng starts_;
  Rng losses_;
  Rng revocations_;
  Rng slowness_;
  Fleet fleet_;
  Queue queue_{Time{}};

  Time now_{};
  int target_ = 0;             // the size wanted
  int entered_ = 0;            // the last wanted size that was reached
  bool unsettled_ = false;     // the autoscaler was last told that a change is under way
  bool understaffed_ = false;  // something has changed since staff() last ran
  Time staff_at_ = never;      // when the next avoided slot becomes usable again
  std::int64_t global_batch_ = 0;
  std::vector<double> parts_;  // each rank's part of the batch; the sum is 1
  double step_s_ = 0;
  double compute_s_ = 0;  // per step, for a worker at full speed with an equal part; 0: not known
  double batch_ = 0;
  double learned_ = 0;      // progress, in samples of the base batch
  double noise_steps_ = 0;  // steps over which the gradient noise has been measured
  double unwatched_ = 0;    // steps since the members last reported
  Time watch_at_{};
  Generation generation_;
  std::optional<bool> promised_;  // Forecast::met in the policy's last forecast
  Outcome out_;
};

}  // namespace elasticrun::simulate::what_if
