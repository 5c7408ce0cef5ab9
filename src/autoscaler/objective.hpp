// What a size is worth: one positive number; larger is better, and 5 % more is 5 % better.
//
// Users want different things of a job (fast for its size, a trade of money for time, in time,
// within a budget), but the search for the best size is the same. So a policy that searches
// (fit.hpp) asks an objective for the worth of each size at a measured or assumed throughput, and
// knows nothing else about it. A separate policy for each aim would have to handle noise, ageing
// and failed tries again.
//
// Worth is relative: only the ratio of two worths taken at the same moment has a meaning. It grows
// with the throughput. All objectives except `scaling` look at the rest of the job, which takes
//     T = samples left / R     and costs     C = price * T;
// while the number of samples left is unknown, they act as `scaling`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autoscaler/policy.hpp"
#include "base/result.hpp"

namespace elasticrun::autoscaler {

// A size at a measured or assumed throughput.
struct Prospect {
  Offer offer;
  double samples_per_s = 0;
};

// What the whole job is worth, in money, if it ends at time `at` after its start.
struct UtilityPoint {
  Duration at{};
  double money = 0;
};

// Parses "1h:100,2h:40"; times must rise, money must not.
Result<std::vector<UtilityPoint>> parse_utility(std::string_view text);

// What the user wants of a job; each policy named after a field needs that field.
struct Aims {
  std::vector<UtilityPoint> utility;  // times rise, money does not; empty: none
  double budget = 0;                  // money; 0: none
  Duration deadline{};                // zero: none
};

struct Bill {
  double seconds = 0;
  double money = 0;
};

// Time and money for the rest of the job if run at `prospect`; nothing when the number of samples
// left is unknown or 0.
std::optional<Bill> rest_of(const Snapshot& snapshot, const Prospect& prospect);

class Objective {
 public:
  virtual ~Objective() = default;
  virtual double worth(const Prospect& prospect, const Snapshot& snapshot,
                       const Limits& limits) const = 0;
  // Text for the respect in which one size is better than another; it follows "12 % better ".
  virtual std::string sense(const Snapshot& snapshot, const Limits& limits) const = 0;

  // Whether the objective also chooses the global batch, for which it needs Snapshot::noise.
  virtual bool chooses_batch() const { return false; }
  // The global batches to try a size with, the offered one among them.
  virtual std::vector<std::int64_t> batches(const Offer& offer, const Snapshot&) const {
    return {offer.global_batch};
  }

  // Text for the limit of the whole job: "deadline of 2 h"; empty when there is none.
  virtual std::string limit() const { return {}; }
  // The part of the limit that the whole job uses if its rest is run at the given prospect; above
  // 1: the limit is exceeded. Nothing without a limit, or while the work left is unknown.
  virtual std::optional<double> used(const Snapshot&, const Prospect&) const { return {}; }
};

// The relative error of the worth when the throughput has the relative error `error`. Close to a
// limit it is much larger than `error`.
double error_of_worth(const Objective& objective, const Prospect& prospect, double error,
                      const Snapshot& snapshot, const Limits& limits);

// Relative margin to a limit, since no throughput is known more exactly: a size to move to has to
// leave this part of what it needs as a reserve, and the present size half of that, so that noise
// does not move the job to and fro. Pollux and Srift report errors of 10 % for fitted models.
inline constexpr double margin = 0.1;

// Throughput / size^min_gain; see `worth` in policy.hpp.
std::unique_ptr<Objective> scaling();

// Or et al. (MLSys 2020), condition 2: of two sizes the one with the larger U(E + T) - C is better,
// where E is the time elapsed. To turn the difference into a ratio, the worth is
// exp((U - C) / cost of the rest at the present size), so that 5 % better is a gain of 5 % of that
// cost. U is linear between the points and constant outside of them.
std::unique_ptr<Objective> utility(std::vector<UtilityPoint> points);

// Prefers the cheapest size that ends in time (worth 1 / C); where none does, the fastest. There is
// no cliff at the limit, because noise would push sizes over it: a size that needs, margin
// included, more time than is left loses worth as the 20th power of the ratio, 62 % for 5 %.
std::unique_ptr<Objective> deadline(Duration limit);

// The same with time and money exchanged: prefers the fastest size whose cost is within the money
// left; where there is none, the cheapest.
std::unique_ptr<Objective> budget(double limit);

}  // namespace elasticrun::autoscaler
