// What a policy sees and what it answers: one interface for all rules that choose a size.
//
// A policy only says which size it wants and why. Who may move at all (one change at a time, a
// settling time between two, limits, sizes that just failed) is the same for every policy and is
// kept by the Autoscaler around it, so that no rule can forget it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autoscaler/samples.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

namespace elasticrun::autoscaler {

// rebatch: the size stays, the global batch is another.
enum class Action { stay, grow, shrink, rebatch };

constexpr std::string_view to_text(Action action) {
  switch (action) {
    case Action::stay:
      return "stay";
    case Action::grow:
      return "grow";
    case Action::shrink:
      return "shrink";
    case Action::rebatch:
      return "rebatch";
  }
  return "stay";
}

struct Figure {
  std::string name;
  double value = 0;
};

// What a policy that has a limit expects of the whole job.
struct Forecast {
  double seconds = 0;
  double cost = 0;
  bool met = true;    // the limit can be met, as far as is known
  std::string words;  // one line: the limit, whether it is met, time and money
};

struct Decision {
  Action action = Action::stay;
  int target = 0;                 // the size wanted; the present one for stay and rebatch
  std::int64_t global_batch = 0;  // the largest wanted from then on; 0: nothing is said of it
  std::string reason;             // one line with the figures that decided
  std::vector<Figure> figures;
  std::optional<Forecast> forecast;
  Time again = never;  // when to ask again even if nothing has happened
};

// A size that can be had, and what is known of it beforehand.
struct Offer {
  int size = 0;
  int hosts = 0;                  // 0: unknown
  double price = 0;               // of all its workers, per hour
  std::int64_t global_batch = 0;  // by the rule of the batch; 0: unknown
};

struct Snapshot {
  int size = 0;  // of the present world
  bool change_under_way = false;
  // What was measured, in order: each size with the batch it is offered with, and for a policy that
  // chooses the batch with others, too.
  std::vector<Measure> curve;
  std::vector<Offer> offers;      // in order: Limits::sizes, and the present one
  std::int64_t global_batch = 0;  // of the present world; 0: unknown
  std::int64_t base_batch = 0;    // that the learning rate was tuned for; 0: unknown
  std::optional<Noise> noise;     // of the gradients, where it is measured
  std::optional<std::int64_t> samples_left;
  Duration elapsed{};  // since the first workers were started
  double spent = 0;    // money, since the first world
};

// Of any size: one that is none of them (somebody was lost) is priced like its nearest.
Offer offer_of(const std::vector<Offer>& offers, int size);

struct Limits {
  int min = 1;
  int max = 1;
  // Sizes that can be had, in order, each within min and max. A change goes from one to another.
  std::vector<int> sizes;
  // Quiet time between two changes.
  Duration settle = std::chrono::seconds(10);
  // A failed try counts for so long (doubled each time it is confirmed), a measure too.
  Duration max_age = std::chrono::minutes(30);
  // An added worker has to bring more than this share of what a present one brings.
  double min_gain = 0.1;
  // A move to a size that has not been measured has to promise so much more `worth`.
  double predicted_gain = 0.05;
  // Steps a size is measured over before it is judged; and when the figures are close.
  std::int64_t min_steps = 10;
  std::int64_t confirm_steps = 100;
};

// For a policy that asks somebody outside, and what is answered.
struct Question {
  Snapshot snapshot;
  Limits limits;
  Time now;
};
struct Advice {
  int target = 0;
  std::string reason;  // may be empty
};

class Policy {
 public:
  virtual ~Policy() = default;
  // Asked only when a change would be allowed. The target is the present size or one of the
  // limits'.
  virtual Decision decide(const Snapshot& snapshot, const Limits& limits, Time now) = 0;
  virtual std::string_view name() const = 0;
  // Whether it says Decision::global_batch, too, for which it needs Snapshot::noise.
  virtual bool chooses_batch() const { return false; }
  // What is to be asked now: told once, and nothing more until it is answered.
  virtual std::optional<Question> question() { return std::nullopt; }
  // An error says what is wrong with the answer; it counts for nothing then.
  virtual Result<void> advised(Result<Advice>) { return {}; }
};

// What all policies look for, as one number: throughput / size^min_gain. Larger is better.
//
// Or et al. grow while an added worker brings more than S of what a present one brings, that is
// while d ln R / d ln k > S; where that ends, R / k^S has its maximum. Turned over, it is the
// completion time T times k^S = T^(1-S) (T k)^S: a mean of time and worker time in which worker
// time has the weight S. So S = 0 asks for the fastest size, S = 1 for the cheapest, and one figure
// compares any two sizes, neighbours or not, which their condition cannot.
double worth(double samples_per_s, int size, double min_gain);

// stay, grow or shrink, as target and present size say.
inline Decision decision(int size, int target, std::string reason) {
  Decision made;
  made.action = target == size ? Action::stay : target > size ? Action::grow : Action::shrink;
  made.target = target;
  made.reason = std::move(reason);
  return made;
}

}  // namespace elasticrun::autoscaler
