// A job with a known throughput curve under simulated time. It reports every interval, does what
// the autoscaler decides, and records what it did.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "autoscaler/autoscaler.hpp"
#include "base/rng.hpp"

namespace elasticrun::autoscaler {

class FakeJob {
 public:
  using Curve = std::function<double(int)>;                  // samples/s at a size
  using Surface = std::function<double(int, std::int64_t)>;  // and with a global batch

  struct Move {
    Time at;
    int from = 0;
    int to = 0;
    std::int64_t batch = 0;
    std::string reason;
  };

  FakeJob(Autoscaler autoscaler, Curve truth, int first, double noise = 0, std::uint64_t seed = 1)
      : scaler(std::move(autoscaler)), curve(std::move(truth)), noise_(noise), rng_(seed) {
    enter(first);
  }

  void run(Duration time) {
    for (const Time end = now + time; now < end;) {
      now += interval;
      report();
      if (left && !work()) return;
      if (now < scaler.wake_at()) continue;
      const Decision made = scaler.decide(now);
      if (scaler.wake_at() <= now) ++at_once;
      if (made.forecast && (forecasts.empty() || forecasts.back().met != made.forecast->met))
        forecasts.push_back(*made.forecast);
      if (const auto question = scaler.question())
        answers_followed += scaler.advised(answer(*question)).has_value();
      if (reasons.empty() || reasons.back() != made.reason) reasons.push_back(made.reason);
      if (made.action != Action::stay) change(made);
    }
  }

  // Workers were lost; the job continues with `rest` workers.
  void lose_to(int rest) {
    scaler.change_started(now);
    enter(rest);
    scaler.change_ended(now);
  }

  // The same members get other shares, which changes the throughput.
  void give_other_shares(Curve truth) {
    scaler.change_started(now);
    curve = std::move(truth);
    enter(size);
    scaler.shares_changed();
    scaler.change_ended(now);
  }

  // "4 8 4"
  std::string path() const {
    std::string sizes;
    for (const Move& move : moves) sizes += (sizes.empty() ? "" : " ") + std::to_string(move.to);
    return sizes;
  }
  // "4/400 4/283"
  std::string path_with_batches() const {
    std::string places;
    for (const Move& move : moves)
      places += fmt::format("{}{}/{}", places.empty() ? "" : " ", move.to, move.batch);
    return places;
  }

  Autoscaler scaler;
  Curve curve;
  Surface surface;                 // replaces `curve` where the batch matters
  std::optional<Noise> gradients;  // gradient noise as worker 1 reports it; none: it reports none
  std::function<bool(int)> can_have = [](int) { return true; };
  std::function<Advice(const Question&)> answer = [](const Question&) { return Advice{}; };
  int answers_followed = 0;
  // decisions that ask to be made again at the same moment, which would loop for ever
  int at_once = 0;
  Time now{};
  std::optional<double> left;  // samples that are left to do; none: the job never ends
  int size = 0;
  std::int64_t batch = 0;  // global batch
  std::vector<Move> moves;
  std::vector<std::string> reasons;
  // only those that differ from the one before in whether the limit is met
  std::vector<Forecast> forecasts;

 private:
  static constexpr Duration interval = std::chrono::seconds(1);
  static constexpr std::int64_t any_batch = 5040;  // divisible by all small sizes
  static constexpr std::int64_t steps = 5;

  void enter(int to) {
    size = to;
    const std::int64_t planned = scaler.plan(to, {}).global_batch;
    batch = planned > 0 ? planned : any_batch;
    generation_ = generation_.next();
    scaler.world_changed(generation_, size, planned, now);
  }

  double rate() const { return surface ? surface(size, batch) : curve(size); }

  bool work() {
    *left -= rate() * seconds(interval);
    scaler.progress(static_cast<std::int64_t>(std::max(*left, 0.0)));
    return *left > 0;
  }

  // All workers see the same noise, as in lockstep: uniform, of standard deviation noise_.
  void report() {
    const double factor = 1 + noise_ * std::sqrt(12.0) * (rng_.uniform() - 0.5);
    const double wall = static_cast<double>(steps * batch) / (rate() * factor);
    for (int w = 0; w < size; ++w) {
      const std::int64_t share = batch / size + (w < batch % size ? 1 : 0);
      scaler.observe({.worker = WorkerId(static_cast<std::uint32_t>(w + 1)),
                      .generation = generation_,
                      .step = StepId(0),
                      .steps = steps,
                      .samples = share * steps,
                      .wall = Duration(static_cast<std::int64_t>(wall * 1e9)),
                      .compute = Duration(1),
                      .noise = w == 0 ? gradients : std::nullopt},
                     now);
    }
  }

  void change(const Decision& made) {
    scaler.change_started(now);
    now += std::chrono::seconds(2);
    report();  // during a change, so it must not count
    if (can_have(made.target)) {
      const int from = size;
      enter(made.target);
      moves.push_back({now, from, size, batch, made.reason});
    }
    scaler.change_ended(now);
  }

  double noise_;
  Rng rng_;
  Generation generation_;
};

}  // namespace elasticrun::autoscaler
