// Predicted throughput of sizes that have not been measured: the laws of time_model.hpp, fitted to
// the measured sizes, with limits on how far they are believed.
//
// A prediction extrapolates a law beyond what it was fitted to. For shares unlike any that were
// seen, it may promise far too much, so a prediction that fewer workers are much faster is capped.
#pragma once

#include <cstdint>
#include <vector>

#include "autoscaler/policy.hpp"
#include "autoscaler/time_model.hpp"

namespace elasticrun::autoscaler {

// A program that only launches work on its device inside compute reports almost no compute time.
// Below this part of a step the compute time counts as unknown.
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
  // Throughput in samples/s, from the worst law to the best.
  struct Range {
    double low = 0;
    double high = 0;
  };

  // `seen` holds at least one size.
  explicit Prediction(const std::vector<Seen>& seen);
  Range of(const Offer& offer) const;
  int largest() const { return largest_; }  // the largest size seen
  // Whether a batch is at most double the largest and at least half the smallest batch seen.
  bool near_batches(std::int64_t batch) const;

 private:
  TimeModel model_;
  double best_rate_ = 0;
  int largest_ = 0;
  std::int64_t smallest_batch_ = 0;
  std::int64_t largest_batch_ = 0;
  bool blind_ = false;  // only one size was seen, and its compute time is unknown
};

}  // namespace elasticrun::autoscaler
