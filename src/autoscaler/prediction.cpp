// See prediction.hpp.
#include "autoscaler/prediction.hpp"

#include <algorithm>

namespace elasticrun::autoscaler {

namespace {

constexpr double most_speedup = 2;

// An unknown batch is assumed to be the same at every size.
double samples_per_step(const Offer& offer) {
  return offer.global_batch > 0 ? static_cast<double>(offer.global_batch) : 1;
}

Place place_of(const Offer& offer) {
  return {.size = offer.size, .hosts = offer.hosts, .share = samples_per_step(offer) / offer.size};
}

double compute_s(double step, double share) {
  return share < least_compute_share ? 0 : step * std::min(share, 1.0);
}

std::vector<Timed> timed(const std::vector<Seen>& all) {
  std::vector<Timed> timed;
  for (const Seen& seen : all) {
    const double step = samples_per_step(seen.offer) / seen.samples_per_s;
    timed.push_back({.place = place_of(seen.offer),
                     .step_s = step,
                     .compute_s = compute_s(step, seen.compute_share),
                     .error = seen.error});
  }
  return timed;
}

}  // namespace

Prediction::Prediction(const std::vector<Seen>& all)
    : model_(timed(all)),
      blind_(all.size() == 1 && all.front().compute_share < least_compute_share) {
  smallest_batch_ = largest_batch_ = all.front().offer.global_batch;
  for (const Seen& seen : all) {
    smallest_batch_ = std::min(smallest_batch_, seen.offer.global_batch);
    largest_batch_ = std::max(largest_batch_, seen.offer.global_batch);
    best_rate_ = std::max(best_rate_, seen.samples_per_s);
    largest_ = std::max(largest_, seen.offer.size);
  }
}

bool Prediction::near_batches(std::int64_t batch) const {
  return batch <= 2 * largest_batch_ && 2 * batch >= smallest_batch_;
}

Prediction::Range Prediction::of(const Offer& offer) const {
  const double samples = samples_per_step(offer);
  const auto range = model_.predict(place_of(offer), samples / best_rate_);
  double high = samples / range.best;
  // Fewer workers that are much faster are not believed before they are measured; fewer workers
  // that are faster at all are not believed while the compute time is unknown.
  if (offer.size < largest_) high = std::min(high, (blind_ ? 1 : most_speedup) * best_rate_);
  return {std::min(samples / range.worst, high), high};
}

}  // namespace elasticrun::autoscaler
