// What sizes bring that have not been measured: the laws of time_model.hpp, put through those that
// have, as far as they are believed.
//
// A law is drawn beyond what it was fitted to. Where a share is smaller than any that was seen it
// has room for much too good a promise, so that fewer workers are much faster is not believed.
#pragma once

#include <cstdint>
#include <vector>

#include "autoscaler/policy.hpp"
#include "autoscaler/time_model.hpp"

namespace elasticrun::autoscaler {

// A program that only starts its device in compute reports next to nothing: below this part of a
// step its compute is not known, either.
inline constexpr double least_compute_share = 0.02;

// A size that was measured.
struct Seen {
  Offer offer;
  double samples_per_s = 0;
  double compute_share = 0;
  double error = 0;  // standard error, relative
};

class Prediction {
 public:
  // samples/s, from the worst to the best of the laws.
  struct Range {
    double low = 0;
    double high = 0;
  };

  // At least one.
  explicit Prediction(const std::vector<Seen>& seen);
  Range of(const Offer& offer) const;
  int largest() const { return largest_; }  // that was seen
  // Whether a batch is at most double, and at least half, of one that was seen.
  bool near_batches(std::int64_t batch) const;

 private:
  TimeModel model_;
  double best_rate_ = 0;
  int largest_ = 0;
  std::int64_t smallest_batch_ = 0;
  std::int64_t largest_batch_ = 0;
  bool blind_ = false;  // one size, and no sign of what its step consists of
};

}  // namespace elasticrun::autoscaler
