// Predicts how long a step takes at a size, from laws fitted to the sizes that have been measured.
//
// The law of Pollux (Qiao et al., OSDI 2021): a step is compute plus sync,
//     T(k) = a_g + b_g m  +  { 0 for k = 1;  a_l + b_l (k - 2) on one host;  a_n + b_n (k - 2) on
//     several }
// with m samples per worker and all six coefficients non-negative. Pollux combines overlapping
// parts with an exponent. Here it is 1 where the compute time is known, because the rest of a step
// is then what does not overlap compute. Where compute is not known, laws in which the largest part
// hides the others (exponent 8) are admitted as well: a data loader with a fixed maximum rate
// produces such a curve.
//
// A few measures fit many such laws, and a search has to find out which of them holds. So the fit
// is not one law but all *basic* ones that agree with the measures: those with no more non-zero
// coefficients than needed. There are at most 2^6 of them, each a small linear problem, so they are
// solved one by one, which is exact and finds the non-negative least squares solution on the way. A
// general solver (NLopt) would find one optimum, depending on where it starts, and no range. Where
// nothing was measured the range is wide: its better end is what Pollux calls optimistic, its worse
// end is that nothing is gained.
#pragma once

#include <array>
#include <span>
#include <vector>

namespace elasticrun::autoscaler {

// A size as the law sees it.
struct Place {
  int size = 1;
  int hosts = 0;     // 0: not known, treated as one
  double share = 1;  // m, samples per worker and step
};

// A measured step time.
struct Timed {
  Place place;
  double step_s = 0;
  double compute_s = 0;  // the part of step_s in compute; 0: not known
  double error = 0;      // relative standard error of step_s
};

class TimeModel {
 public:
  // Seconds per step, from the best to the worst of the laws that agree with the measures.
  struct Range {
    double best = 0;
    double worst = 0;
  };

  // At least one measure.
  explicit TimeModel(std::span<const Timed> measured);
  // `no_gain_s` is the step time at which the place brings no more throughput than the job already
  // reaches; it is the worse end of the range where nothing like the place was seen.
  Range predict(const Place& place, double no_gain_s) const;

  static constexpr std::size_t coefficients = 6;
  struct Law {
    std::array<double, TimeModel::coefficients> coefficients{};  // a_g b_g a_l b_l a_n b_n
    double exponent = 1;
  };
  const std::vector<Law>& laws() const { return laws_; }

 private:
  std::vector<Law> laws_;  // the best fit first
  bool local_seen_ = false;
  bool across_seen_ = false;
  int smallest_across_ = 0;
};

}  // namespace elasticrun::autoscaler
