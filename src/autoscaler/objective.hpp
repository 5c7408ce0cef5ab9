// What a size is worth: one positive number, larger is better, and 5 % more is 5 % better.
//
// What somebody wants of a job differs (fast for its size, money for time, in time, within the
// money); how the size is found that gives most of it does not. So a policy that searches (fit.hpp)
// asks an objective for the worth of each size at a throughput, measured or supposed, and knows
// nothing else about it. A rule of its own per wish would have to learn again about noise, ageing
// and tries in vain.
//
// Worth is relative: only the ratio of two of the same moment means something. It grows with the
// throughput. Objectives but `scaling` look at the rest of the job, which takes
//     T = samples left / R     and costs     C = price * T;
// while nobody knows how much is left, they are `scaling`.
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

// A size at a throughput that it has, or may have.
struct Prospect {
  Offer offer;
  double samples_per_s = 0;
};

// What the whole job is worth in money when it ends then.
struct UtilityPoint {
  Duration at{};
  double money = 0;
};

// "1h:100,2h:40": times that rise, money that does not.
Result<std::vector<UtilityPoint>> parse_utility(std::string_view text);

// What is wanted of a job; the policies named after these need theirs.
struct Aims {
  std::vector<UtilityPoint> utility;  // later, and not more
  double budget = 0;                  // money; 0: none
  Duration deadline{};                // zero: none
};

struct Bill {
  double seconds = 0;
  double money = 0;
};

// Of the rest of the job, were it run so; nothing when nobody knows how much is left.
std::optional<Bill> rest_of(const Snapshot& snapshot, const Prospect& prospect);

class Objective {
 public:
  virtual ~Objective() = default;
  virtual double worth(const Prospect& prospect, const Snapshot& snapshot,
                       const Limits& limits) const = 0;
  // In what one size is better than another: follows "12 % better ".
  virtual std::string sense(const Snapshot& snapshot, const Limits& limits) const = 0;

  // Whether it is about the global batch, too, for which it needs Snapshot::noise; and those that
  // it would have a size tried with, the offered one among them.
  virtual bool chooses_batch() const { return false; }
  virtual std::vector<std::int64_t> batches(const Offer& offer, const Snapshot&) const {
    return {offer.global_batch};
  }

  // What the whole job may take: "deadline of 2 h"; empty when there is no limit.
  virtual std::string limit() const { return {}; }
  // The part of that it takes, were the rest run so; above 1: it does not suffice.
  virtual std::optional<double> used(const Snapshot&, const Prospect&) const { return {}; }
};

// Relative, of the worth, when the throughput has the relative error; beside a limit it is larger.
double error_of_worth(const Objective& objective, const Prospect& prospect, double error,
                      const Snapshot& snapshot, const Limits& limits);

// Nobody knows a throughput better than so: a size that is to be gone to has to leave this part of
// what it needs free of the limit, and the present one half of it, so that noise moves nobody to
// and fro. Pollux and Srift report errors of 10 % for fitted models.
inline constexpr double margin = 0.1;

// Throughput / size^min_gain; see `worth`.
std::unique_ptr<Objective> scaling();

// Or et al. (MLSys 2020), condition 2: of two sizes the one with the larger U(E + T) - C, E being
// the time elapsed. Made a ratio: exp((U - C) / what the rest costs here), so that 5 % better is a
// gain of 5 % of those costs. U is linear between the points and constant outside of them.
std::unique_ptr<Objective> utility(std::vector<UtilityPoint> points);

// The cheapest size that ends in time, 1 / C; and, where none does, the fastest. In between there
// is no cliff, which noise would push sizes over: one that needs, with the margin, more time than
// is left loses worth as the 20th power of the ratio, 62 % for 5 %.
std::unique_ptr<Objective> deadline(Duration limit);

// The same with time and money exchanged: the fastest size whose costs are within the money that is
// left; and, where none are, the cheapest.
std::unique_ptr<Objective> budget(double limit);

}  // namespace elasticrun::autoscaler
