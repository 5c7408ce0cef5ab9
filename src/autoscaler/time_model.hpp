// How long a step takes at a size, as a law fitted to the sizes that have been measured.
//
// The law of Pollux (Qiao et al., OSDI 2021): a step is compute plus sync,
//     T(k) = a_g + b_g m  +  { 0 for k = 1;  a_l + b_l (k - 2) on one host;  a_n + b_n (k - 2) on
//     several }
// with m samples per worker and all six coefficients non-negative. Their exponent, for what
// overlaps, is 1 where the compute time is known, for then the rest of a step is what does not
// overlap it. Where it is not known, laws in which the largest part hides the others (exponent 8)
// are borne, too: a reader of data that keeps up with so many samples and no more makes such a
// curve.
//
// A few measures leave room for many such laws, and which of them holds is what a search wants to
// find out. So the fit is not one law but all *basic* ones that the measures bear: those with as
// few coefficients that are not zero as it takes. There are at most 2^6 of them, and each is a
// small linear problem, so they are solved one by one, which is exact, and finds the non-negative
// least squares on the way. A general solver (NLopt) would find one optimum, depending on where it
// starts, and no range. Where nothing was seen the range says so: its better end is what Pollux
// calls optimistic, its worse end that nothing is gained.
#pragma once

#include <array>
#include <span>
#include <vector>

namespace elasticrun::autoscaler {

// A size as the law sees it.
struct Place {
  int size = 1;
  int hosts = 0;     // 0: not known, taken for one
  double share = 1;  // m, samples per worker and step
};

struct Timed {
  Place place;
  double step_s = 0;
  double compute_s = 0;  // of it; 0: not known
  double error = 0;      // standard error, relative
};

class TimeModel {
 public:
  // Seconds per step, from the best to the worst of the laws that the measures bear.
  struct Range {
    double best = 0;
    double worst = 0;
  };

  // At least one measure.
  explicit TimeModel(std::span<const Timed> measured);
  // `no_gain_s`: the step time at which the place brings no more throughput than is had already;
  // the worse end where nothing like it was seen.
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
