// What a policy would do with a job, in virtual time: the real autoscaler (policy, window, batch
// rule, settling times) against a described cluster.
//
// The fault search (cluster.hpp) runs every message of every worker, to find what breaks. Here the
// question is what a decision costs, over hours and thousands of hosts, so the unit is the round:
// the steps between two reports, drawn at once from the noise of one step. Membership, agents and
// messages are left out; what they cost enters as three figures (start of a worker, idle time of a
// change, recovery from a loss).
//
// Everything follows from one seed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "autoscaler/autoscaler.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "simulate/curve.hpp"

namespace elasticrun::simulate {

struct Conditions {
  double noise = 0;  // standard deviation of a step's time, relative; log-normal
  Duration start{};  // from the decision to grow until the newcomers are ready, beside the training
  Duration idle{};   // nobody trains, per planned change
  Duration recovery{};           // nobody trains, per lost host
  double failures_per_hour = 0;  // of each host
  double price = 0;              // per worker and hour
  Duration report = std::chrono::milliseconds(500);
  // The job is cut off after this, whatever is done.
  Duration limit = std::chrono::hours(24 * 365);
};

// Who answers for the program of the policy exec.
using Advisor = std::function<Result<autoscaler::Advice>(const autoscaler::Question&)>;

struct Question {
  std::string policy;
  int start = 0;              // workers; 0: the most
  autoscaler::Limits limits;  // min, max and sizes are the curve's
  std::uint64_t seed = 1;
  Advisor advisor = [](const auto&) { return Error{"nobody runs its program here"}; };
};

struct Moved {
  Time at{};  // of the decision
  int from = 0;
  int to = 0;
  std::string reason;
};

struct Outcome {
  bool done = false;          // all samples, within the limit
  double seconds = 0;         // until the last sample
  double worker_seconds = 0;  // members and starting ones
  double cost = 0;
  double samples = 0;
  double weighed_seconds = 0;  // the integral of size^min_gain over time: what policies want small
  int size = 0;                // at the end
  // When the last move was done, 0: none; and when a size within 5 % of the best one (best_size)
  // was entered and none worse after it, the whole time if never.
  double moved_s = 0;
  double found_s = 0;
  std::vector<Moved> moves;
  int failures = 0;
  std::int64_t rounds = 0;
  std::string reason;      // the last
  std::string bad_advice;  // the advisor's first mistake; empty: none
};

// The policy must exist and the start be one of the curve's sizes; else an error.
Result<Outcome> what_if(const Curve& curve, const Conditions& conditions, const Question& question);

// What a size is worth against the best one.
double relative_worth(const Curve& curve, int size, double min_gain);
// The size of the curve that is best by the policies' measure, and what a job at any one size comes
// to, without noise, changes and failures.
int best_size(const Curve& curve, double min_gain);
Outcome at_one_size(const Curve& curve, const Conditions& conditions, int size, double min_gain);

}  // namespace elasticrun::simulate
