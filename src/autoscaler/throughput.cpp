// Verdicts on pairs of sizes, the walk that follows from them, and the text of the decisions.
//
// The verdicts are the only memory that decides; the walk is computed from them again each time, so
// a lost worker, a cancelled change or another list of sizes needs no special case.
#include "autoscaler/throughput.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "autoscaler/decision_text.hpp"

namespace elasticrun::autoscaler {

namespace {

// Rounds (see samples.hpp) before a size is judged, before a close comparison is decided, and
// before a throughput serves as the reference for drift.
constexpr int least_rounds = 3;
constexpr int confirm_rounds = 20;
constexpr int reference_rounds = 20;
// A verdict closer to the threshold than this many standard errors waits for more steps.
constexpr double clear_errors = 2;
constexpr double drift_limit = 0.1;
// The interval between retries that keep failing grows at most 2^3-fold.
constexpr int most_retry_doublings = 3;
// With less work left than this many settling times, a change does not pay for itself any more.
constexpr int least_work = 2;

// The nearest available size below (above) `size`; 0 when there is none.
int below(const Limits& limits, int size) {
  const auto at = std::lower_bound(limits.sizes.begin(), limits.sizes.end(), size);
  return at == limits.sizes.begin() ? 0 : *(at - 1);
}
int above(const Limits& limits, int size) {
  const auto at = std::upper_bound(limits.sizes.begin(), limits.sizes.end(), size);
  return at == limits.sizes.end() ? 0 : *at;
}

double gain_of(const Measure& low, const Measure& high) {
  const double per_added = (high.samples_per_s - low.samples_per_s) / (high.size - low.size);
  return per_added / (low.samples_per_s / low.size);
}

// Standard error of the gain, from those of the two throughputs.
double gain_error(const Measure& low, const Measure& high) {
  const double slope = high.samples_per_s / low.samples_per_s * low.size / (high.size - low.size);
  return slope * std::hypot(low.error, high.error);
}

Decision wait_for_steps(const Snapshot& snapshot, const Limits& limits) {
  std::int64_t steps = 0;
  for (const Measure& measure : snapshot.curve)
    if (measure.size == snapshot.size) steps = measure.steps;
  // The count stays out of the reason: reasons are logged when they change.
  Decision made =
      decision(snapshot.size, snapshot.size,
               fmt::format("measuring {}: {} steps in {} reports are needed",
                           workers_text(snapshot.size), limits.min_steps, least_rounds));
  made.figures = {{"steps", static_cast<double>(steps)}};
  return made;
}

Decision too_late(const Snapshot& snapshot, Duration left) {
  Decision made =
      decision(snapshot.size, snapshot.size, "too little work left to pay for a change");
  made.figures = {{"seconds_left", seconds(left)}};
  return made;
}

}  // namespace

const Measure* Throughput::measured(const View& view, int size) const {
  for (const Measure& measure : view.snapshot.curve) {
    if (measure.size != size) continue;
    const bool enough = measure.steps >= view.limits.min_steps && measure.rounds >= least_rounds;
    const bool fresh = measure.at >= fresh_since_ && view.now - measure.at <= view.limits.max_age;
    return enough && fresh ? &measure : nullptr;
  }
  return nullptr;
}

Time Throughput::expires(const Judged& judged, const Limits& limits) const {
  if (judged.pays) return never;
  return judged.at + limits.max_age * (1 << std::min(judged.times - 1, most_retry_doublings));
}

Throughput::Verdict Throughput::judge(const View& view, Pair pair) {
  const auto found = judged_.find(pair);
  if (found != judged_.end() && view.now < expires(found->second, view.limits))
    return found->second.pays ? Verdict::pays : Verdict::fails;
  const Measure* low = measured(view, pair.low);
  const Measure* high = measured(view, pair.high);
  if (!low || !high) return Verdict::unknown;
  // An expired verdict must be measured again, not repeated from the same measures.
  if (found != judged_.end() && std::min(low->at, high->at) <= found->second.at)
    return Verdict::unknown;

  const double gain = gain_of(*low, *high);
  const double error = gain_error(*low, *high);
  const bool close = std::abs(gain - view.limits.min_gain) < clear_errors * error;
  const Measure& here = low->size == view.snapshot.size ? *low : *high;
  if (close && here.size == view.snapshot.size &&
      (here.steps < view.limits.confirm_steps || here.rounds < confirm_rounds))
    return Verdict::close;

  const bool pays = gain > view.limits.min_gain;
  const bool again = found != judged_.end() && found->second.pays == pays;
  judged_[pair] = Judged{.pays = pays,
                         .gain = gain,
                         .low_rate = low->samples_per_s,
                         .high_rate = high->samples_per_s,
                         .at = view.now,
                         .times = again ? found->second.times + 1 : 1};
  return pays ? Verdict::pays : Verdict::fails;
}

// Follows the verdicts from the present size to where they end: a size to settle at, or one that
// has to be measured. A step is walked up only when it pays and down only when it does not, so
// the walk cannot turn back and ends.
Throughput::Walk Throughput::walk(const View& view) {
  const int here = view.snapshot.size;
  int at = here;
  std::optional<Pair> because;
  while (at == here || measured(view, at)) {
    const int low = below(view.limits, at);
    const int high = above(view.limits, at);
    const Pair down{low, at};
    const Pair up{at, high};
    const Verdict from_below = low ? judge(view, down) : Verdict::pays;
    if (from_below == Verdict::close) return {.target = here, .because = down, .close = true};
    if (from_below == Verdict::fails) {
      at = low;
      because = down;
      continue;
    }
    const Verdict to_above = high ? judge(view, up) : Verdict::fails;
    if (to_above == Verdict::close) return {.target = here, .because = up, .close = true};
    if (to_above == Verdict::pays) {
      at = high;
      because = up;
      continue;
    }
    if (to_above == Verdict::unknown) {
      if (!because && low && from_below == Verdict::pays) because = down;
      return {.target = high, .because = because, .retry = at == here && judged_.contains(up)};
    }
    if (!because && high) because = up;
    if (from_below == Verdict::unknown) return {.target = low, .because = because};
    if (!because && low) because = down;
    break;
  }
  return {.target = at, .because = because};
}

void Throughput::watch_drift(const Measure& here) {
  const bool other_shares = std::exchange(shares_, here.shares) != here.shares;
  if (settled_ != here.size) settled_ = 0;
  if (settled_ == 0 || other_shares) {
    reference_.reset();
    away_since_.reset();
    return;
  }
  // A re-form at this size begins a new visit, which counts its rounds from 0.
  if (away_since_ && here.rounds < *away_since_) away_since_.reset();
  if (here.rounds < reference_rounds) return;
  if (!reference_) reference_ = here.samples_per_s;
  if (std::abs(here.samples_per_s / *reference_ - 1) <= drift_limit) {
    away_since_.reset();
    return;
  }
  // Wait until no round from before is left in the window: a short slow phase is then ignored, and
  // the throughput that is compared with other sizes is not a mixture.
  if (!away_since_) away_since_ = here.rounds;
  if (here.rounds < *away_since_ + static_cast<int>(Window::capacity)) return;
  drift_ = fmt::format("{} now bring{} {} samples/s, no longer {}: all is looked at anew; ",
                       workers_text(here.size), here.size == 1 ? "s" : "",
                       rate_text(here.samples_per_s), rate_text(*reference_));
  drift_size_ = here.size;
  judged_.clear();
  fresh_since_ = here.at;
  settled_ = 0;
  reference_.reset();
  away_since_.reset();
}

std::string Throughput::pair_text(Pair pair, const Limits& limits) const {
  const Judged& judged = judged_.at(pair);
  return fmt::format(
      "{} -> {} workers brought {} -> {} samples/s, {:.2f} of a full worker's worth; {} than "
      "{:.2f}",
      pair.low, pair.high, rate_text(judged.low_rate), rate_text(judged.high_rate), judged.gain,
      judged.pays ? "more" : "not more", limits.min_gain);
}

Time Throughput::next_retry(const View& view) const {
  const int here = view.snapshot.size;
  const auto found = judged_.find({here, above(view.limits, here)});
  if (found == judged_.end()) return never;
  // A verdict that has expired already waits for reports, not for time.
  const Time at = expires(found->second, view.limits);
  return at > view.now ? at : never;
}

std::string Throughput::move_text(const View& view, const Walk& walk, const Measure& here) const {
  const int size = view.snapshot.size;
  const std::string to = fmt::format("{} to {}", direction(size, walk.target), walk.target);
  if (walk.retry) {
    const Judged& last = judged_.at({size, walk.target});
    return fmt::format("{} last tried {} ago did not pay; {} to see whether {} now",
                       workers_text(walk.target), elasticrun::to_text(view.now - last.at), to,
                       walk.target == 1 ? "it does" : "they do");
  }
  if (walk.because) return fmt::format("{}, {}", pair_text(*walk.because, view.limits), to);
  return fmt::format("{} bring{} {} samples/s, {} to compare", workers_text(size),
                     size == 1 ? "s" : "", rate_text(here.samples_per_s), to);
}

Decision Throughput::explain(const View& view, const Walk& walk, const Measure& here) const {
  const int size = view.snapshot.size;
  std::string reason;
  if (walk.close) {
    reason = fmt::format("{} and {} workers are too close to judge yet: measuring on",
                         walk.because->low, walk.because->high);
  } else if (walk.target != size) {
    reason = move_text(view, walk, here);
  } else if (!walk.because) {
    reason = fmt::format("staying at {}, the only size that can be had", size);
  } else {
    // The pair is the one above, which failed, unless there is none.
    const bool top = walk.because->high == size;
    reason = fmt::format("staying at {}: {}{}", size, pair_text(*walk.because, view.limits),
                         top ? ", and no larger size can be had" : "");
  }
  if (drift_size_ == size) reason = drift_ + reason;
  Decision made = decision(size, walk.target, std::move(reason));
  made.figures = {{"samples_per_s", here.samples_per_s}, {"min_gain", view.limits.min_gain}};
  if (walk.because && !walk.close) {
    const Judged& judged = judged_.at(*walk.because);
    made.figures.push_back({"low", static_cast<double>(walk.because->low)});
    made.figures.push_back({"high", static_cast<double>(walk.because->high)});
    made.figures.push_back({"low_samples_per_s", judged.low_rate});
    made.figures.push_back({"high_samples_per_s", judged.high_rate});
    made.figures.push_back({"gain", judged.gain});
  }
  return made;
}

Decision Throughput::decide(const Snapshot& snapshot, const Limits& limits, Time now) {
  const View view{snapshot, limits, now};
  const Measure* here = measured(view, snapshot.size);
  if (!here) return wait_for_steps(snapshot, limits);
  watch_drift(*here);
  const Walk path = walk(view);
  if (path.target != snapshot.size) {
    const auto left = time_left(snapshot, *here);
    if (left && *left < limits.settle * least_work) return too_late(snapshot, *left);
    return explain(view, path, *here);
  }
  if (!path.close) {
    settled_ = snapshot.size;
    drift_size_ = 0;
  }
  Decision made = explain(view, path, *here);
  made.again = next_retry(view);
  return made;
}

}  // namespace elasticrun::autoscaler
