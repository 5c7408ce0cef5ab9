// What a policy would do with a job, in virtual time: the real autoscaler (policy, window, batch
// rule, settling times), the real rules for stragglers and shares, and the job's own choice of
// slots, against a described cluster.
//
// The fault search (cluster.hpp) runs every message of every worker, to find what breaks. Here the
// question is what a decision costs, over hours and thousands of hosts, so the unit is the round:
// the steps between two reports, whose time is drawn at once from the noise of one step.
// Membership, agents and messages are left out; their costs enter as a few numbers (start of a
// worker, idle time of a change, recovery from a loss).
//
// Failures of hosts are random, at a rate per hour for each host, whether the job uses it or not:
// so two policies meet the same failures when they have the same seed. Everything follows from that
// seed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autoscaler/autoscaler.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "job/spec.hpp"
#include "simulate/what_if/curve.hpp"

namespace elasticrun::simulate::what_if {

// A random duration, uniform between low and high.
struct Span {
  Duration low{};
  Duration high{};
  constexpr Span() = default;
  constexpr Span(Duration least, Duration most) : low(least), high(most) {}
  template <class Rep, class Period>
  constexpr Span(std::chrono::duration<Rep, Period> always) : low(always), high(always) {}
  bool operator==(const Span&) const = default;
};

struct Conditions {
  double noise = 0;  // relative standard deviation of a step's time; log-normal
  Span start;        // time until a started worker is ready, while the others train
  Duration idle{};   // time without training, per planned change
  double price = 1;  // per worker and hour, where the host has none of its own
  int spares = 0;    // workers kept ready
  Duration report = std::chrono::milliseconds(500);  // time between two reports
  // The job is stopped after this time, finished or not.
  Duration limit = std::chrono::hours(24 * 365);

  // Rates per host at which hosts die, and at which their owner takes them away (the latter after a
  // notice). Another machine replaces each of them.
  double failures_per_hour = 0;
  double revoked_per_hour = 0;
  Duration notice{};
  Duration recovery{};  // time without training, per loss of members
  Duration new_host{};  // time until the replacement is there; its workers start then

  // Rate per host at which hosts become slow for a while.
  double slow_per_hour = 0;
  double slow_speed = 0.5;                        // relative to full speed
  Duration slow_time = std::chrono::minutes(20);  // mean of an exponential distribution
  job::StragglerAction stragglers = job::StragglerAction::replace;
  bool shares_by_speed = true;  // slow workers that are not replaced get smaller shares
};

// Answers in place of the program of the policy exec.
using Advisor = std::function<Result<autoscaler::Advice>(const autoscaler::Question&)>;

struct Question {
  std::string policy;
  int start = 0;              // workers at the start; 0: the largest size
  autoscaler::Aims aims;      // each policy named after an aim needs that aim
  autoscaler::Limits limits;  // min, max and sizes are replaced by those of the curve
  std::uint64_t seed = 1;
  Advisor advisor = [](const auto&) { return Error{"its program is not run here"}; };
};

struct Moved {
  Time at{};  // time of the decision
  int from = 0;
  int to = 0;
  std::int64_t global_batch = 0;  // the global batch chosen with it; 0: none was
  std::string reason;
};

// An event in the job other than a move: a failure, or what was done about one.
struct Note {
  Time at{};
  std::string text;
};

inline constexpr std::size_t most_notes = 1000;

struct Outcome {
  bool done = false;          // all samples were trained within the time limit
  double seconds = 0;         // until the last sample
  double worker_seconds = 0;  // of all workers that existed
  double cost = 0;
  double samples = 0;  // computed; more than the job has if some were worth less than a whole one
  double weighed_seconds = 0;  // integral of size^min_gain over time, which policies minimise
  int size = 0;                // at the end
  std::int64_t global_batch = 0;
  // moved_s: when the last move was completed; 0: none. found_s: when a size worth within 5 % of
  // the best one (best_size) was entered with no worse one after it; the whole time if never.
  double moved_s = 0;
  double found_s = 0;
  std::vector<Moved> moves;
  std::vector<Note> notes;  // the first most_notes of them
  // Numbers of failures, counting only hosts that had workers.
  int failures = 0;
  int revoked = 0;
  int slow_phases = 0;
  int stragglers = 0;  // confirmed stragglers
  int replaced = 0;    // stragglers that were replaced
  std::int64_t rounds = 0;
  std::string reason;      // the reason of the last decision
  std::string bad_advice;  // the advisor's first mistake; empty: none
  // met: whether the policy's deadline or budget was met; nothing where it has none. refused_s:
  // since when its forecast has said that the limit cannot be met; nothing if it says it can.
  std::optional<bool> met;
  std::optional<double> refused_s;
};

// Simulates the job. An error if the policy does not exist or `start` is not a size of the curve.
Result<Outcome> answer(const Curve& curve, const Conditions& conditions, const Question& question);

}  // namespace elasticrun::simulate::what_if
