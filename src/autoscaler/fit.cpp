// What each size promises, and when a promise is worth a move.
#include "autoscaler/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "autoscaler/prediction.hpp"
#include "autoscaler/telling.hpp"
#include "base/check.hpp"

namespace elasticrun::autoscaler {

namespace {

// Rounds before a size is judged; and before its throughput is the reference for a drift.
constexpr int least_rounds = 3;
constexpr int reference_rounds = 20;
constexpr double drift_limit = 0.1;
// Two measures further apart than so many standard errors are not of the same thing.
constexpr double contradiction = 3;
// A comparison closer than so many standard errors waits for more steps.
constexpr double clear_errors = 2;
// Going back to a size seen asks for less than a promise does: both are measured, but a move has
// its cost.
constexpr double least_difference = 0.025;
constexpr int most_doublings = 3;
constexpr double least_promise = 0.03;
constexpr double reopening = 5;
// Per max_age, once it has passed; and never more than so much.
constexpr double aging = 0.1;
constexpr double most_doubt = 0.9;
// A try in vain, there and back, in settling times; and what has to be left for a way back to pay.
constexpr double probe_settles = 6;
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

std::string bring_text(int size) {
  return fmt::format("{} {}", workers_text(size), size == 1 ? "brings" : "bring");
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

bool Fit::usable(const Known& known) const {
  const Measure& measure = known.joined;
  return measure.rounds >= least_rounds && measure.at >= fresh_since_;
}

// How far a throughput may have moved since it was measured, relative.
double Fit::doubt(const Measure& measure, const View& view) const {
  const double age = seconds(view.now - measure.at) / seconds(view.limits.max_age);
  const double kept = age / (1 << std::clamp(times_ - 1, 0, most_doublings));
  return std::clamp(aging * (kept - 1), 0.0, most_doubt);
}

void Fit::remember(const View& view) {
  for (const Measure& measure : view.snapshot.curve) {
    Known& known = known_[measure.size];
    if (known.visit.visits != measure.visits && usable(known)) known.before = known.joined;
    if (known.before && known.before->at < fresh_since_) known.before.reset();
    known.visit = measure;
    known.joined = known.before ? joined(*known.before, measure) : measure;
  }
}

Fit::Promise Fit::between(const View& view, int size, double low, double high) const {
  const auto worth = [&](double samples_per_s) {
    return objective_->worth({offer_of(view.snapshot.offers, size), samples_per_s}, view.snapshot,
                             view.limits);
  };
  return {
      .size = size, .low = low, .high = high, .low_worth = worth(low), .high_worth = worth(high)};
}

std::vector<Fit::Promise> Fit::promises(const View& view) const {
  std::vector<Seen> seen;
  std::map<int, Promise> all;
  double best_worth = 0;
  for (const auto& [size, known] : known_) {
    if (!usable(known)) continue;
    const Measure& measure = known.joined;
    const Offer offer = offer_of(view.snapshot.offers, size);
    const double doubt = size == view.snapshot.size ? 0 : this->doubt(measure, view);
    const double rate = measure.samples_per_s;
    seen.push_back({offer, rate, measure.compute_share, measure.error + doubt});
    all[size] = between(view, size, rate * (1 - doubt), rate * (1 + doubt));
    all[size].measured = doubt == 0;
    all[size].error =
        error_of_worth(*objective_, {offer, rate}, measure.error, view.snapshot, view.limits);
    if (doubt == 0) best_worth = std::max(best_worth, all[size].low_worth);
  }
  const Prediction prediction(seen);
  const int largest = prediction.largest();
  const auto next = std::ranges::upper_bound(view.limits.sizes, largest);
  const int most = std::max(2 * largest, next == view.limits.sizes.end() ? 0 : *next);
  for (const int size : view.limits.sizes) {
    // Sizes beyond say only whether a limit can be met at all.
    if (all.contains(size) || (size > most && !limited_)) continue;
    const auto range = prediction.of(offer_of(view.snapshot.offers, size));
    // Beside a limit it matters that a law errs, too.
    const double error = limited_ ? margin : 0;
    all[size] = between(view, size, range.low * (1 - error), range.high * (1 + error));
    all[size].in_reach = size <= most;
  }
  std::vector<Promise> list;
  for (auto& [size, promise] : all) {
    if (!view.can_be(size)) continue;
    if (!promise.measured)
      weigh(promise.low_worth / best_worth, promise.high_worth / best_worth, promise.gain,
            promise.loss);
    list.push_back(promise);
  }
  return list;
}

// Whether more steps here could turn the comparison round.
bool Fit::too_close(const View& view, const Promise& best, const Promise& here) const {
  const Known& known = known_.at(here.size);
  if (known.joined.steps >= view.limits.confirm_steps) return false;
  const double error = std::hypot(here.error, best.error);
  const double ratio = std::log(best.high_worth / here.high_worth);
  return std::abs(ratio - std::log1p(least_difference)) < clear_errors * error;
}

// What has been settled is looked at again and again, so it takes more to be undone: sooner or
// later noise makes every close pair look the other way round.
double Fit::wanted_difference(const View& view, const Promise& best, const Promise& here) const {
  if (searching_) return least_difference;
  return view.limits.predicted_gain + clear_errors * std::hypot(here.error, best.error);
}

// How long what is found out now is good for, in seconds.
double Fit::horizon(const View& view) const {
  const auto left = time_left(view.snapshot, known_.at(view.snapshot.size).joined);
  return seconds(std::min(left.value_or(view.limits.max_age), view.limits.max_age));
}

// Whether what is left of the job is long enough for the gain to make up for a try in vain.
bool Fit::pays_back(const View& view, const Promise& unseen) const {
  const double probe = probe_settles * seconds(view.limits.settle);
  return unseen.gain * (horizon(view) - probe) > unseen.loss * probe;
}

// One size and no compute time tell nothing about what the step consists of, and no promise makes
// it leave the largest size: then the next smaller one is worth a look.
const Fit::Promise* Fit::blind_try(const std::vector<Promise>& all, const Promise& here) const {
  const Measure& measure = known_.at(here.size).joined;
  if (!searching_ || measure.compute_share >= least_compute_share) return nullptr;
  const auto at = std::ranges::find(all, here.size, &Promise::size);
  if (at == all.begin() || std::ranges::count_if(all, &Promise::measured) != 1) return nullptr;
  return &*(at - 1);
}

// Whether so much is left that a try in vain is a small part of it.
bool Fit::pays_for(const View& view, const Promise& smaller) const {
  const double probe = probe_settles * seconds(view.limits.settle);
  return smaller.loss * probe < least_promise * horizon(view);
}

bool Fit::drifted(const View& view, const Measure& here) {
  const bool other_shares = std::exchange(shares_, here.shares) != here.shares;
  if (settled_ != here.size || searching_ || other_shares) {
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
  // Until no round from before is left in the window.
  if (here.rounds < away_ + static_cast<int>(Window::capacity)) return false;
  drift_ =
      fmt::format("{} {} samples/s, no longer {}: all is looked at anew; ", bring_text(here.size),
                  rate_text(here.samples_per_s), rate_text(*reference_));
  fresh_since_ = view.now;
  known_.clear();
  reference_.reset();
  searching_ = true;
  times_ = 0;
  return true;
}

Decision Fit::explore(const View& view, const Promise& here, const Promise& unseen) const {
  Decision made = decision(
      here.size, unseen.size,
      fmt::format("{}{} {} samples/s, {} promise {} to {}: {} to {} to measure", drift_,
                  bring_text(here.size), rate_text(here.low), unseen.size, rate_text(unseen.low),
                  rate_text(unseen.high), direction(here.size, unseen.size), unseen.size));
  made.figures = {{"samples_per_s", here.low},
                  {"promised_low", unseen.low},
                  {"promised_high", unseen.high},
                  {"gain", unseen.gain},
                  {"min_gain", view.limits.min_gain}};
  return made;
}

Decision Fit::go_back(const View& view, const Promise& here, const Promise& best) const {
  const double gain = best.low_worth / here.low_worth - 1;
  Decision made = decision(
      here.size, best.size,
      fmt::format("{}{} brought {} samples/s, {} bring {}: {} better {}, {} to {}", drift_,
                  workers_text(best.size), rate_text(best.low), here.size, rate_text(here.low),
                  gain_text(gain), objective_->sense(view.snapshot, view.limits),
                  direction(here.size, best.size), best.size));
  made.figures = {{"samples_per_s", here.low},
                  {"best_samples_per_s", best.low},
                  {"gain", gain},
                  {"min_gain", view.limits.min_gain}};
  return made;
}

Decision Fit::settle(const View& view, const Promise& here, const Promise& next) {
  if (searching_) {
    times_ = settled_ == here.size ? times_ + 1 : 1;
    settled_ = here.size;
  }
  searching_ = false;
  drift_.clear();
  judged_rounds_ = known_.at(here.size).visit.rounds;
  judged_by_ = usable_sizes(view);
  std::string reason = fmt::format("staying at {}: {} samples/s", here.size, rate_text(here.low));
  if (next.size != 0)
    reason += fmt::format(", {} {} {} samples/s, {} {}", next.size,
                          next.measured ? "brought" : "promise at best", rate_text(next.high),
                          gain_text(next.high_worth / here.low_worth - 1, "+"),
                          objective_->sense(view.snapshot, view.limits));
  Decision made = decision(here.size, here.size, std::move(reason));
  made.figures = {{"samples_per_s", here.low}, {"min_gain", view.limits.min_gain}};
  return made;
}

std::vector<int> Fit::usable_sizes(const View& view) const {
  std::vector<int> sizes = view.limits.sizes;  // another list is another question, too
  for (const auto& [size, known] : known_)
    if (usable(known)) sizes.push_back(size);
  return sizes;
}

// What was measured can be gone to, as far off as it may be; once the search has ended, no other.
std::optional<Forecast> Fit::forecast(const View& view, const std::vector<Promise>& all) const {
  std::vector<Chance> chances;
  for (const auto& [size, known] : known_) {
    if (!usable(known) || !view.can_be(size)) continue;
    const double rate = known.joined.samples_per_s;
    const double off = std::min(clear_errors * known.joined.error, most_doubt);
    chances.push_back({offer_of(view.snapshot.offers, size), rate * (1 - off), rate * (1 + off)});
  }
  for (const Promise& promise : all)
    if (searching_ && !promise.measured)
      chances.push_back({offer_of(view.snapshot.offers, promise.size), promise.low, promise.high});
  return foresee(*objective_, view.snapshot, view.limits, chances, met_);
}

Decision Fit::told(const View& view, const std::vector<Promise>& all, Decision made) {
  made.forecast = forecast(view, all);
  if (!made.forecast) return made;
  met_ = made.forecast->met;
  if (made.action == Action::stay) made.reason += "; " + made.forecast->words;
  made.figures.push_back({"predicted_s", made.forecast->seconds});
  made.figures.push_back({"predicted_cost", made.forecast->cost});
  made.figures.push_back({"met", made.forecast->met ? 1.0 : 0.0});
  return made;
}

Decision Fit::measuring(const View& view) {
  const int size = view.snapshot.size;
  return decision(size, size,
                  fmt::format("measuring {}: {} steps in {} reports are needed", workers_text(size),
                              view.limits.min_steps, least_rounds));
}

Decision Fit::decide(const Snapshot& snapshot, const Limits& limits, Time now) {
  const View view{snapshot, limits, now};
  remember(view);
  const auto at = known_.find(snapshot.size);
  if (at != known_.end() && drifted(view, at->second.visit)) remember(view);
  const auto found = known_.find(snapshot.size);
  if (found == known_.end() || !usable(found->second)) return measuring(view);

  // Settled, and nothing has been forgotten: the question is the same until the window is another.
  // And a slow minute is no answer: it passes, or it is a drift.
  const int rounds = found->second.visit.rounds;
  const bool same = usable_sizes(view) == judged_by_ && rounds >= judged_rounds_ &&
                    rounds < judged_rounds_ + static_cast<int>(Window::capacity);
  if (!searching_ && settled_ == snapshot.size && (same || away_ > 0)) {
    const auto ahead = forecast(view, {});
    if (!ahead || ahead->met == met_) return judged_;
  }
  return judge(view, promises(view), found->second.joined);
}

Decision Fit::judge(const View& view, const std::vector<Promise>& all, const Measure& measure) {
  const Limits& limits = view.limits;
  Promise here;
  Promise best;    // measured, beside this one
  Promise unseen;  // the one that promises most
  for (const Promise& promise : all) {
    if (promise.size == measure.size)
      here = promise;
    else if (promise.measured && promise.low_worth > best.low_worth)
      best = promise;
    else if (!promise.measured && promise.in_reach &&
             std::pair(promise.gain, promise.high_worth) >
                 std::pair(unseen.gain, unseen.high_worth))
      unseen = promise;
  }
  ER_CHECK(here.size != 0);
  // What the first size promises of others is relative to it, however noisy it is; a choice is not.
  const bool few = measure.steps < limits.min_steps;
  if (few && best.size != 0) return measuring(view);
  // What has been settled takes more than a slightly other estimate to be opened again.
  const double needed = least_promise * (searching_ ? 1 : reopening);
  if (unseen.high_worth > (1 + limits.predicted_gain) * std::max(here.low_worth, best.low_worth) &&
      unseen.gain >= needed && pays_back(view, unseen)) {
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
  if (best.size == 0 || late) return judged_ = told(view, all, settle(view, here, next));
  if (searching_ && too_close(view, best, here))
    return decision(here.size, here.size,
                    fmt::format("{} and {} workers are too close to judge yet: measuring on",
                                here.size, best.size));
  if (best.low_worth > here.low_worth * (1 + wanted_difference(view, best, here))) {
    searching_ = true;
    return told(view, all, go_back(view, here, best));
  }
  return judged_ = told(view, all, settle(view, here, next));
}

}  // namespace elasticrun::autoscaler
