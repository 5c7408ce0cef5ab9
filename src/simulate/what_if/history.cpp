// See history.hpp.
#include "simulate/what_if/history.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "autoscaler/prediction.hpp"
#include "job/report/event_log.hpp"

namespace elasticrun::simulate::what_if {

namespace {

using job::report::Event;

// Numbers of a file that anybody may have written stay within what can be computed with.
constexpr double most = std::int64_t{1} << 40;

double figure(const Event& event, std::string_view field, double otherwise = 0) {
  return std::clamp(job::report::number(event, field).value_or(otherwise), 0.0, most);
}

int count(const Event& event, std::string_view field) {
  return static_cast<int>(std::min(figure(event, field), 1e6));
}

Duration from_ms(double ms) { return Duration(std::llround(ms * 1e6)); }

class Reader {
 public:
  Result<History> read(const std::vector<Event>& events) {
    for (const Event& event : events) {
      if (event.name == "job_started") started(event);
      if (event.name == "world_formed") world(event);
      if (event.name == "sample") sample(event);
      if (event.name == "job_finished") finished(event);
    }
    history_.curve = window_.curve();
    // Where a policy has chosen the batch, keep only the last batch of each size.
    std::erase_if(history_.curve, [&](const autoscaler::Measure& measure) {
      return measured_.at(measure.size) != measure.global_batch;
    });
    if (history_.curve.empty())
      return Error{
          "no size was measured in it: the job was too short, or its program does not "
          "use the library"};
    history_.batch = rule();
    history_.last = job::report::text(events.back(), "time");
    return history_;
  }

 private:
  void started(const Event& event) {
    history_.slots = count(event, "slots");
    history_.policy = job::report::text(event, "policy");
  }

  // Counts the samples up to the step in `field`, all made with the batch of the present world.
  void committed(const Event& event, std::string_view field) {
    const double step = figure(event, field, step_);
    if (step <= step_) return;
    history_.samples += (step - step_) * batch_;
    step_ = step;
  }

  void world(const Event& event) {
    const int size = count(event, "size");
    if (size < 1) return;
    committed(event, "step");
    batch_ = figure(event, "global_batch");
    if (batch_ > 0) batches_[size] = batch_;
    generation_ = generation_of(event);
    size_ = size;
    const auto hosts = static_cast<int>(job::report::list(event, "hosts").size());
    if (hosts > 0)
      history_.slots_per_host = std::max(history_.slots_per_host, (size + hosts - 1) / hosts);
    window_batch_ = static_cast<std::int64_t>(batch_);
    window_.world_changed(generation_, size, window_batch_);
  }

  void sample(const Event& event) {
    if (size_ == 0 || generation_of(event) != generation_) return;
    if (!(batch_ > 0)) batch_ = figure(event, "global_batch");
    const double before = step_;
    committed(event, "step");
    autoscaler::WorldSample round{.generation = generation_, .size = size_};
    round.steps = std::max<std::int64_t>(1, std::llround(step_ - before));
    round.samples_per_s = figure(event, "samples_per_s");
    round.batch = figure(event, "global_batch");
    round.step_time = from_ms(figure(event, "step_ms"));
    round.compute_time = from_ms(figure(event, "compute_ms"));
    // The window drops the first round after a change. A round in the log did count, so the first
    // one is added twice.
    if (window_.add(round, Time{}) || window_.add(round, Time{})) measured_[size_] = window_batch_;
  }

  void finished(const Event& event) {
    committed(event, "steps");
    history_.finished = job::report::number(event, "exit_code") == 0;
  }

  static Generation generation_of(const Event& event) {
    return Generation(static_cast<Generation::rep>(figure(event, "generation")));
  }

  autoscaler::BatchRule rule() const {
    double per_worker = 0;
    double most = 0;
    for (const auto& [size, batch] : batches_) {
      per_worker = std::max(per_worker, batch / size);
      most = std::max(most, batch);
    }
    const bool capped = std::ranges::any_of(
        batches_, [&](const auto& one) { return one.second < per_worker * one.first * 0.999; });
    const bool same =
        std::ranges::all_of(batches_, [&](const auto& one) { return one.second == most; });
    autoscaler::BatchRule rule;
    if (capped || same) rule.max_batch = std::llround(most);
    if (!same) rule.batch = std::llround(std::ceil(per_worker));
    return rule;
  }

  History history_;
  autoscaler::Window window_;
  Generation generation_;
  int size_ = 0;
  double batch_ = 0;
  double step_ = 0;
  std::map<int, double> batches_;
  std::int64_t window_batch_ = 0;         // planned global batch of the present world
  std::map<int, std::int64_t> measured_;  // by size: the last planned batch that has a sample
};

}  // namespace

Result<History> read_history(const std::vector<Event>& events) { return Reader().read(events); }

std::vector<autoscaler::Chance> chances(const History& history,
                                        const std::vector<autoscaler::Offer>& offers) {
  const auto planned = [&](autoscaler::Offer offer) {
    offer.global_batch = autoscaler::plan(history.batch, offer.size, {}).global_batch;
    return offer;
  };
  std::vector<autoscaler::Seen> seen;
  for (const autoscaler::Measure& measure : history.curve) {
    autoscaler::Offer offer = planned(autoscaler::offer_of(offers, measure.size));
    if (measure.global_batch > 0) offer.global_batch = measure.global_batch;
    seen.push_back({offer, measure.samples_per_s, measure.compute_share, measure.error});
  }
  const autoscaler::Prediction prediction(seen);
  std::vector<autoscaler::Chance> all;
  for (const autoscaler::Offer& offer : offers) {
    const auto known = std::ranges::find(history.curve, offer.size, &autoscaler::Measure::size);
    const auto range =
        known == history.curve.end()
            ? prediction.of(planned(offer))
            : autoscaler::Prediction::Range{known->samples_per_s, known->samples_per_s};
    all.push_back({offer, range.low, range.high});
  }
  return all;
}

}  // namespace elasticrun::simulate::what_if
