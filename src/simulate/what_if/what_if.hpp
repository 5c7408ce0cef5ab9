// What a policy would do with a job, in virtual time: the real autoscaler (policy, window, batch
// rule, settling times), the real rules of who is a straggler and of who computes how much, and the
// job's own choice of slots, against a described cluster.
//
// The fault search (cluster.hpp) runs every message of every worker, to find what breaks. Here the
// question is what a decision costs, over hours and thousands of hosts, so the unit is the round:
// the steps between two reports, drawn at once from the noise of one step. Membership, agents and
// messages are left out; what they cost enters as a few figures (start of a worker, idle time of a
// change, recovery from a loss).
//
// What befalls hosts comes at random, so much an hour for each of them, whether the job uses it or
// not: so two policies meet the same mishaps when they have the same seed. Everything follows from
// that seed.
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

// Any time between two, each as likely as another.
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
  double noise = 0;  // standard deviation of a step's time, relative; log-normal
  Span start;        // of a worker, until it is ready; beside the training
  Duration idle{};   // nobody trains, per planned change
  double price = 1;  // per worker and hour, where the host has none of its own
  int spares = 0;    // workers kept ready
  Duration report = std::chrono::milliseconds(500);
  // The job is cut off after this, whatever is done.
  Duration limit = std::chrono::hours(24 * 365);

  // Hosts that die, or are taken away by their owner, so many an hour of each; those after a
  // notice. Another machine takes the place of one.
  double failures_per_hour = 0;
  double revoked_per_hour = 0;
  Duration notice{};
  Duration recovery{};  // nobody trains, per loss of members
  Duration new_host{};  // until the other one is there; its workers start then

  // Hosts that are slow for a while, so many times an hour of each.
  double slow_per_hour = 0;
  double slow_speed = 0.5;
  Duration slow_time = std::chrono::minutes(20);  // in the mean; exponential
  job::StragglerAction stragglers = job::StragglerAction::replace;
  bool shares_by_speed = true;  // of those that are slow and not replaced
};

// Who answers for the program of the policy exec.
using Advisor = std::function<Result<autoscaler::Advice>(const autoscaler::Question&)>;

struct Question {
  std::string policy;
  int start = 0;              // workers; 0: the most
  autoscaler::Aims aims;      // the policies named after them need theirs
  autoscaler::Limits limits;  // min, max and sizes are the curve's
  std::uint64_t seed = 1;
  Advisor advisor = [](const auto&) { return Error{"nobody runs its program here"}; };
};

struct Moved {
  Time at{};  // of the decision
  int from = 0;
  int to = 0;
  std::int64_t global_batch = 0;  // that was chosen with it; 0: none was
  std::string reason;
};

// What befell it and what was done about it, beside moves.
struct Note {
  Time at{};
  std::string text;
};

inline constexpr std::size_t most_notes = 1000;

struct Outcome {
  bool done = false;          // all samples, within the limit
  double seconds = 0;         // until the last sample
  double worker_seconds = 0;  // members and starting ones
  double cost = 0;
  double samples = 0;  // computed; more than the job has where one was worth less than a whole one
  double weighed_seconds = 0;  // the integral of size^min_gain over time: what policies want small
  int size = 0;                // at the end
  std::int64_t global_batch = 0;
  // When the last move was done, 0: none; and when a size within 5 % of the best one (best_size)
  // was entered and none worse after it, the whole time if never.
  double moved_s = 0;
  double found_s = 0;
  std::vector<Moved> moves;
  std::vector<Note> notes;  // the first most_notes of them
  // Of hosts that had workers.
  int failures = 0;
  int revoked = 0;
  int slow_phases = 0;
  int stragglers = 0;  // confirmed ones
  int replaced = 0;    // of these
  std::int64_t rounds = 0;
  std::string reason;      // the last
  std::string bad_advice;  // the advisor's first mistake; empty: none
  // Whether the policy's deadline or budget was met, nothing where it has none; and from when on it
  // has said that it cannot be.
  std::optional<bool> met;
  std::optional<double> refused_s;
};

// The policy must exist and the start be one of the curve's sizes; else an error.
Result<Outcome> answer(const Curve& curve, const Conditions& conditions, const Question& question);

}  // namespace elasticrun::simulate::what_if
