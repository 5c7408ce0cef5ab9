// What each size promises, and when a promise is worth a move.
#include "autoscaler/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "autoscaler/decision_text.hpp"
#include "autoscaler/prediction.hpp"
#include "base/check.hpp"

namespace elasticrun::autoscaler {

namespace {

// Rounds before the throughput of a setting serves as the reference for drift.
constexpr int reference_rounds = 20;
constexpr double drift_limit = 0.1;
// Two measures further apart than this many standard errors contradict each other.
constexpr double contradiction = 3;
// A comparison closer than this many standard errors waits for more steps.
constexpr double clear_errors = 2;
// Going back to a measured size needs less gain than a promise does, because both sizes are
// measured; but a move has its cost.
constexpr double least_difference = 0.025;
constexpr int most_age_doublings = 3;
constexpr double least_promise = 0.03;
constexpr double reopening = 5;
// Growth of the doubt per max_age, once that has passed, and the largest doubt.
constexpr double aging = 0.1;
constexpr double most_doubt = 0.9;
// Duration of a failed try, there and back, in settling times.
constexpr double probe_settles = 6;
// Settling times of work that must be left for a return to a better size to pay.
constexpr int least_work = 2;

Measure joined(const Measure& before, const Measure& visit) {
  const double error = std::hypot(before.error, visit.error);
  if (std::abs(std::log(visit.samples_per_s / before.samples_per_s)) > contradiction * error)
    return visit;
  const double old_weight = 1 / (before.error * before.error);
  const double weight = 1 / (visit.error * visit.error);
  const double all = old_weight + weight;
  Measure both = visit;
  both.samples_per_s = (before.samples_per_s * old_weight + visit.samples_per_s * weight) / all;
  both.error = 1 / std::sqrt(all);
  both.steps += before.steps;
  both.rounds += before.rounds;
  return both;
}

// The means of max(x - 1, 0) and of max(1 - x, 0) for x uniform from low to high.
void weigh(double low, double high, double& gain, double& loss) {
  const double width = std::max(high - low, 1e-6);
  const double above = std::max(high - 1, 0.0);
  const double below = std::max(1 - low, 0.0);
  gain = low >= 1 ? (low + high) / 2 - 1 : above * above / (2 * width);
  loss = high <= 1 ? 1 - (low + high) / 2 : below * below / (2 * width);
}

}  // namespace

Offer Fit::View::offer(const Setting& setting) const {
  Offer offer = offer_of(snapshot.offers, setting.size);
  offer.global_batch = setting.global_batch;
  return offer;
}

// Whether the job can run with that setting: it may have been measured and no longer be offered.
bool Fit::can_be(const View& view, const Setting& setting) const {
  if (setting == view.here()) return true;
  if (!std::ranges::binary_search(view.limits.sizes, setting.size)) return false;
  const std::int64_t offered = offer_of(view.snapshot.offers, setting.size).global_batch;
  return setting.global_batch == offered || (chooses_batch() && setting.global_batch < offered);
}

bool Fit::usable(const Known& known) const {
  const Measure& measure = known.joined;
  return measure.rounds >= least_rounds && measure.at >= fresh_since_;
}

// How far a throughput may have changed since it was measured, relative.
double Fit::doubt(const Measure& measure, const View& view) const {
  const double age = seconds(view.now - measure.at) / seconds(view.limits.max_age);
  const double kept = age / (1 << std::clamp(times_ - 1, 0, most_age_doublings));
  return std::clamp(aging * (kept - 1), 0.0, most_doubt);
}

void Fit::remember(const View& view) {
  for (const Measure& measure : view.snapshot.curve) {
    Known& known = known_[setting_of(measure)];
    if (known.visit.visits != measure.visits && usable(known)) known.before = known.joined;
    if (known.before && known.before->at < fresh_since_) known.before.reset();
    known.visit = measure;
    known.joined = known.before ? joined(*known.before, measure) : measure;
  }
}

Fit::Promise Fit::between(const View& view, const Setting& setting, double low, double high) const {
  const auto worth = [&](double samples_per_s) {
    return objective_->worth({view.offer(setting), samples_per_s}, view.snapshot, view.limits);
  };
  return {.setting = setting,
          .low = low,
          .high = high,
          .low_worth = worth(low),
          .high_worth = worth(high)};
}

std::vector<Fit::Promise> Fit::promises(const View& view) const {
  std::vector<Seen> seen;
  std::map<Setting, Promise> all;
  double best_worth = 0;
  for (const auto& [setting, known] : known_) {
    if (!usable(known)) continue;
    const Measure& measure = known.joined;
    const Offer offer = view.offer(setting);
    const double doubt = setting == view.here() ? 0 : this->doubt(measure, view);
    const double rate = measure.samples_per_s;
    seen.push_back({offer, rate, measure.compute_share, measure.error + doubt});
    Promise& promise = all[setting];
    promise = between(view, setting, rate * (1 - doubt), rate * (1 + doubt));
    promise.measured = doubt == 0;
    promise.error =
        error_of_worth(*objective_, {offer, rate}, measure.error, view.snapshot, view.limits);
    if (doubt == 0) best_worth = std::max(best_worth, promise.low_worth);
  }
  const Prediction prediction(seen);
  const int largest = prediction.largest();
  const auto next = std::ranges::upper_bound(view.limits.sizes, largest);
  const int most = std::max(2 * largest, next == view.limits.sizes.end() ? 0 : *next);
  for (const int size : view.limits.sizes) {
    // Larger sizes only serve to find out whether a limit can be met at all.
    if (size > most && !limited_) continue;
    for (const std::int64_t batch :
         objective_->batches(offer_of(view.snapshot.offers, size), view.snapshot)) {
      const Setting setting{size, batch};
      if (all.contains(setting)) continue;
      const auto range = prediction.of(view.offer(setting));
      // With a limit, the error of the laws themselves matters as well.
      const double error = limited_ ? margin : 0;
      all[setting] = between(view, setting, range.low * (1 - error), range.high * (1 + error));
      all[setting].in_reach = size <= most && (!chooses_batch() || prediction.near_batches(batch));
    }
  }
  std::vector<Promise> list;
  for (auto& [setting, promise] : all) {
    if (!can_be(view, setting)) continue;
    if (!promise.measured)
      weigh(promise.low_worth / best_worth, promise.high_worth / best_worth, promise.gain,
            promise.loss);
    list.push_back(promise);
  }
  return list;
}

// Whether more steps here could reverse the comparison.
bool Fit::too_close(const View& view, const Promise& best, const Promise& here) const {
  const Known& known = known_.at(here.setting);
  if (known.joined.steps >= view.limits.confirm_steps) return false;
  const double error = std::hypot(here.error, best.error);
  const double ratio = std::log(best.high_worth / here.high_worth);
  return std::abs(ratio - std::log1p(least_difference)) < clear_errors * error;
}

// The relative gain needed to go back to a measured size. A settled decision is checked again and
// again, and noise sooner or later reverses every close comparison, so undoing it needs more.
double Fit::wanted_difference(const View& view, const Promise& best, const Promise& here) const {
  if (searching_) return least_difference;
  return view.limits.predicted_gain + clear_errors * std::hypot(here.error, best.error);
}

// How long a result found now stays useful, in seconds.
double Fit::horizon(const View& view) const {
  const auto left = time_left(view.snapshot, known_.at(view.here()).joined);
  return seconds(std::min(left.value_or(view.limits.max_age), view.limits.max_age));
}

// Whether the rest of the job is long enough for the gain to make up for the cost of a failed try.
bool Fit::pays_back(const View& view, const Promise& unseen) const {
  const double probe = probe_settles * seconds(view.limits.settle);
  return unseen.gain * (horizon(view) - probe) > unseen.loss * probe;
}

// With a single measure and no compute time, nothing is known of what the step consists of, and no
// promise could make the policy leave the largest size. Then the next smaller size is worth a try.
const Fit::Promise* Fit::blind_try(const std::vector<Promise>& all, const Promise& here) const {
  const Measure& measure = known_.at(here.setting).joined;
  if (!searching_ || measure.compute_share >= least_compute_share) return nullptr;
  const auto at = std::ranges::find(all, here.setting, &Promise::setting);
  if (at == all.begin() || std::ranges::count_if(all, &Promise::measured) != 1) return nullptr;
  return &*(at - 1);
}

// Whether enough of the job is left for a failed try to be a small part of it.
bool Fit::pays_for(const View& view, const Promise& smaller) const {
  const double probe = probe_settles * seconds(view.limits.settle);
  return smaller.loss * probe < least_promise * horizon(view);
}

bool Fit::drifted(const View& view, const Measure& here) {
  const bool other_shares = std::exchange(shares_, here.shares) != here.shares;
  if (settled_ != setting_of(here) || searching_ || other_shares) {
    reference_.reset();
    away_ = 0;
    return false;
  }
  if (away_ > here.rounds) away_ = 0;
  if (here.rounds < reference_rounds) return false;
  if (!reference_) reference_ = here.samples_per_s;
  if (std::abs(here.samples_per_s / *reference_ - 1) <=
      std::max(drift_limit, contradiction * here.error)) {
    away_ = 0;
    return false;
  }
  if (away_ == 0) away_ = here.rounds;
  // Wait until no round from before is left in the window.
  if (here.rounds < away_ + static_cast<int>(Window::capacity)) return false;
  drift_ =
      fmt::format("{} {} samples/s, no longer {}: all is looked at anew; ", bring(setting_of(here)),
                  rate_text(here.samples_per_s), rate_text(*reference_));
  fresh_since_ = view.now;
  known_.clear();
  reference_.reset();
  searching_ = true;
  times_ = 0;
  return true;
}

// What a decision is based on: the available sizes and the settings with usable measures.
std::vector<Fit::Setting> Fit::grounds(const View& view) const {
  std::vector<Setting> settings;
  for (const int size : view.limits.sizes) settings.push_back({size, 0});
  for (const auto& [setting, known] : known_)
    if (usable(known)) settings.push_back(setting);
  return settings;
}

// The forecast over measured settings, each within its error, and, while the search goes on, over
// unmeasured ones as well.
std::optional<Forecast> Fit::forecast(const View& view, const std::vector<Promise>& all) const {
  std::vector<Chance> chances;
  for (const auto& [setting, known] : known_) {
    if (!usable(known) || !can_be(view, setting)) continue;
    const double rate = known.joined.samples_per_s;
    const double off = std::min(clear_errors * known.joined.error, most_doubt);
    chances.push_back({view.offer(setting), rate * (1 - off), rate * (1 + off)});
  }
  for (const Promise& promise : all)
    if (searching_ && !promise.measured)
      chances.push_back({view.offer(promise.setting), promise.low, promise.high});
  return foresee(*objective_, view.snapshot, view.limits, chances, met_);
}

Decision Fit::decide(const Snapshot& snapshot, const Limits& limits, Time now) {
  const View view{snapshot, limits, now};
  remember(view);
  // Other batches are offered once the noise is known; what was settled before is open again.
  const auto batches = objective_->batches(snapshot.offers.back(), snapshot).size();
  if (std::exchange(batches_, batches) < batches) searching_ = true;
  const auto at = known_.find(view.here());
  if (at != known_.end() && drifted(view, at->second.visit)) remember(view);
  const auto found = known_.find(view.here());
  if (found == known_.end() || !usable(found->second)) return measuring(view);

  // When settled on unchanged grounds, the decision stands until the window has been replaced. A
  // slow minute does not reopen it either: it passes, or it turns out to be drift.
  const int rounds = found->second.visit.rounds;
  const bool same = grounds(view) == judged_by_ && rounds >= judged_rounds_ &&
                    rounds < judged_rounds_ + static_cast<int>(Window::capacity);
  if (!searching_ && settled_ == view.here() && (same || away_ > 0)) {
    const auto ahead = forecast(view, {});
    if (!ahead || ahead->met == met_) return judged_;
  }
  return judge(view, promises(view), found->second.joined);
}

Decision Fit::judge(const View& view, const std::vector<Promise>& all, const Measure& measure) {
  const Limits& limits = view.limits;
  Promise here;
  Promise best;    // the best measured one other than `here`
  Promise unseen;  // the unmeasured one that promises most
  for (const Promise& promise : all) {
    if (promise.setting == view.here())
      here = promise;
    else if (promise.measured && promise.low_worth > best.low_worth)
      best = promise;
    else if (!promise.measured && promise.in_reach &&
             std::pair(promise.gain, promise.high_worth) >
                 std::pair(unseen.gain, unseen.high_worth))
      unseen = promise;
  }
  ER_CHECK(here.setting.size != 0);
  // Promises derived from the first size are relative to it, so its noise does not matter; a choice
  // between measured sizes needs enough steps.
  const bool few = measure.steps < limits.min_steps;
  if (few && best.setting.size != 0) return measuring(view);
  // Reopening a settled decision takes more than a slightly different estimate. But another batch
  // needs no new workers, and the noise scale that calls for it grows all the time.
  const bool other_size = unseen.setting.size != here.setting.size;
  const double needed = least_promise * (other_size && !searching_ ? reopening : 1);
  const bool promising =
      unseen.gain >= needed &&
      unseen.high_worth > (1 + limits.predicted_gain) * std::max(here.low_worth, best.low_worth);
  if (promising && pays_back(view, unseen)) {
    searching_ = true;
    return told(view, all, explore(view, here, unseen));
  }
  if (few) return measuring(view);
  if (const Promise* smaller = blind_try(all, here); smaller && pays_for(view, *smaller)) {
    searching_ = true;
    return told(view, all, explore(view, here, *smaller));
  }
  const auto left = time_left(view.snapshot, measure);
  const bool late = left && *left < limits.settle * least_work;
  const Promise& next = best.high_worth > unseen.high_worth ? best : unseen;
  const char* why_not = "";
  if (promising && !next.measured)
    why_not = "; what it may bring does not pay for a try that fails";
  else if (late && next.high_worth > here.low_worth)
    why_not = "; too little of the job is left for a change";
  if (best.setting.size == 0 || late)
    return judged_ = told(view, all, settle(view, here, next, why_not));
  if (searching_ && too_close(view, best, here))
    return decision(here.setting.size, here.setting.size,
                    fmt::format("{} and {} are too close to judge yet: measuring on",
                                name(here.setting), workers(best.setting)));
  if (best.low_worth > here.low_worth * (1 + wanted_difference(view, best, here))) {
    searching_ = true;
    return told(view, all, go_back(view, here, best));
  }
  return judged_ = told(view, all, settle(view, here, next, why_not));
}

}  // namespace elasticrun::autoscaler
