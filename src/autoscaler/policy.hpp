// What a policy sees and what it answers: one interface for all rules that choose a size.
//
// A policy only says which size it wants and why. The conditions for a move (one change at a time,
// a settling time between changes, limits, sizes that just failed) are the same for every policy,
// and the Autoscaler around it enforces them, so that no policy can forget them.
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

// rebatch: the size stays, the global batch changes.
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

// A number that goes into the decision's log record under this name.
struct Figure {
  std::string name;
  double value = 0;
};

// What a policy that has a limit expects of the whole job.
struct Forecast {
  double seconds = 0;
  double cost = 0;
  bool met = true;    // the limit can be met, as far as is known
  std::string words;  // one line of text: the limit, whether it can be met, time and money
};

struct Decision {
  Action action = Action::stay;
  int target = 0;                 // the size wanted; the present one for stay and rebatch
  std::int64_t global_batch = 0;  // the largest wanted from then on; 0: not chosen here
  std::string reason;             // one line of text with the numbers that decided
  std::vector<Figure> figures;
  std::optional<Forecast> forecast;
  Time again = never;  // when to decide again even if nothing has happened
  bool waits = false;  // nothing was considered: there is no world yet, or it changes or settles
};

// An available size, and what is known of it beforehand.
struct Offer {
  int size = 0;
  int hosts = 0;                  // 0: unknown
  double price = 0;               // of all its workers together, per hour
  std::int64_t global_batch = 0;  // by the batch rule; 0: unknown
};

struct Snapshot {
  int size = 0;  // workers in the present world
  bool change_under_way = false;
  // All measures, sorted by size: each size with the batch it is offered with, and, for a policy
  // that chooses the batch, also with other batches.
  std::vector<Measure> curve;
  std::vector<Offer> offers;      // sorted: one for each of Limits::sizes and the present size
  std::int64_t global_batch = 0;  // of the present world; 0: unknown
  std::int64_t base_batch = 0;    // the batch the learning rate was tuned for; 0: unknown
  std::optional<Noise> noise;     // gradient noise, where it is measured
  std::optional<std::int64_t> samples_left;
  Duration elapsed{};  // since the first workers were started
  double spent = 0;    // money, since the first world
};

// The offer for any size. A size that is not in the list (after a loss, say) is priced per worker
// like the next larger one that is, or like the largest if there is none.
Offer offer_of(const std::vector<Offer>& offers, int size);

struct Limits {
  int min = 1;
  int max = 1;
  // Available sizes, sorted, each within min and max. A change goes from one of them to another.
  std::vector<int> sizes;
  // Quiet time between two changes.
  Duration settle = std::chrono::seconds(10);
  // How long a failed try counts (doubled each time it is confirmed), and how long a measure does.
  Duration max_age = std::chrono::minutes(30);
  // An added worker has to bring more than this part of what a present one brings.
  double min_gain = 0.1;
  // A move to a size that has not been measured has to promise this much more `worth`, relative.
  double predicted_gain = 0.05;
  // Steps a size is measured over before it is judged, and before a close comparison is judged.
  std::int64_t min_steps = 10;
  std::int64_t confirm_steps = 100;
};

// What a policy asks outside (see Exec), and the answer to it.
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
  // Called only when a change would be allowed. The target must be the present size or one of
  // limits.sizes.
  virtual Decision decide(const Snapshot& snapshot, const Limits& limits, Time now) = 0;
  virtual std::string_view name() const = 0;
  // Whether it also sets Decision::global_batch, for which it needs Snapshot::noise.
  virtual bool chooses_batch() const { return false; }
  // The question to ask now. Each is returned once, and no other before it is answered.
  virtual std::optional<Question> question() { return std::nullopt; }
  // Takes the answer. An error says what is wrong with it; such an answer is ignored.
  virtual Result<void> advised(Result<Advice>) { return {}; }
};

// How good a size is at a throughput: throughput / size^min_gain. Larger is better.
//
// Or et al. grow while an added worker brings more than S (min_gain) of what a present one brings,
// that is while d ln R / d ln k > S; where that ends, R / k^S has its maximum. Its inverse is
// proportional to the completion time T times k^S = T^(1-S) (T k)^S: a geometric mean of time and
// worker time in which worker time has the weight S. So S = 0 asks for the fastest size, S = 1 for
// the cheapest, and one number compares any two sizes, neighbours or not, which their condition
// cannot do.
double worth(double samples_per_s, int size, double min_gain);

// A decision to stay, grow or shrink, depending on the target and the present size.
inline Decision decision(int size, int target, std::string reason) {
  Decision made;
  made.action = target == size ? Action::stay : target > size ? Action::grow : Action::shrink;
  made.target = target;
  made.reason = std::move(reason);
  return made;
}

}  // namespace elasticrun::autoscaler
