// The formulas of objective.hpp.
#include "autoscaler/objective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "autoscaler/decision_text.hpp"
#include "base/check.hpp"

namespace elasticrun::autoscaler {

namespace {

// Exponent with which worth falls beyond a limit.
constexpr double strictness = 20;
// Lower bound of allowed / needed: sizes further beyond the limit get the same factor. A worth of 0
// could not be compared with another one.
constexpr double least_ratio = 1e-12;
// At least this part of the limit counts as left, so that sizes can be compared even past it.
constexpr double least_left = 0.01;
// Where the utility at stake is much larger than the costs, one percent of it is the scale instead.
constexpr double least_scale = 0.01;
// Bound of the exponent of e, so that the worth stays finite.
constexpr double most_exponent = 600;

std::optional<UtilityPoint> parse_point(std::string_view item) {
  const auto colon = item.find(':');
  if (colon == item.npos) return {};
  const auto at = parse_duration(item.substr(0, colon));
  const std::string_view money = item.substr(colon + 1);
  double value = 0;
  const auto [end, ec] = std::from_chars(money.data(), money.data() + money.size(), value);
  if (!at || ec != std::errc{} || end != money.data() + money.size() || !std::isfinite(value))
    return {};
  return UtilityPoint{*at, value};
}

class Scaling : public Objective {
 public:
  double worth(const Prospect& prospect, const Snapshot&, const Limits& limits) const override {
    return autoscaler::worth(prospect.samples_per_s, prospect.offer.size, limits.min_gain);
  }
  std::string sense(const Snapshot&, const Limits& limits) const override {
    return fmt::format("at a weight of {:.2f} on workers", limits.min_gain);
  }
};

// An objective for the rest of the job; `scaling` while the amount of work left is unknown.
class OfRest : public Objective {
 public:
  double worth(const Prospect& prospect, const Snapshot& snapshot,
               const Limits& limits) const final {
    const auto rest = rest_of(snapshot, prospect);
    if (!rest) return plain_.worth(prospect, snapshot, limits);
    return worth_of(*rest, snapshot, prospect.offer.size == snapshot.size);
  }
  std::string sense(const Snapshot& snapshot, const Limits& limits) const final {
    if (snapshot.samples_left.value_or(0) > 0) return advantage();
    return plain_.sense(snapshot, limits) + ", because the work that is left is not known";
  }

 private:
  virtual double worth_of(const Bill& rest, const Snapshot& snapshot, bool here) const = 0;
  virtual std::string advantage() const = 0;

  Scaling plain_;
};

class Utility final : public OfRest {
 public:
  explicit Utility(std::vector<UtilityPoint> points) : points_(std::move(points)) {
    ER_CHECK(!points_.empty());
  }

 private:
  double worth_of(const Bill& rest, const Snapshot& snapshot, bool) const override {
    const double gained = at(seconds(snapshot.elapsed) + rest.seconds) - points_.front().money;
    const double range = points_.front().money - points_.back().money;
    const double scale = std::max(costs_here(snapshot, rest), least_scale * range);
    return std::exp(std::clamp((gained - rest.money) / scale, -most_exponent, most_exponent));
  }
  std::string advantage() const override { return "in utility less costs"; }

  // Cost of the rest at the present size; that of `otherwise` while the present size is unmeasured.
  static double costs_here(const Snapshot& snapshot, const Bill& otherwise) {
    const auto here = std::ranges::find(snapshot.curve, snapshot.size, &Measure::size);
    if (here == snapshot.curve.end()) return otherwise.money;
    return rest_of(snapshot, {offer_of(snapshot.offers, snapshot.size), here->samples_per_s})
        ->money;
  }
  double at(double s) const {
    const auto after = std::ranges::upper_bound(
        points_, s, {}, [](const UtilityPoint& point) { return seconds(point.at); });
    if (after == points_.begin()) return points_.front().money;
    if (after == points_.end()) return points_.back().money;
    const UtilityPoint& before = *(after - 1);
    const double part = (s - seconds(before.at)) / seconds(after->at - before.at);
    return std::lerp(before.money, after->money, part);
  }

  std::vector<UtilityPoint> points_;
};

// Worth of a size that uses the amount `wanted` of what should be small and `limited` of what is
// limited to `allowed`. `here`: it is the present size.
double within(double wanted, double limited, double allowed, bool here) {
  const double needed = limited * (1 + (here ? margin / 2 : margin));
  return std::pow(std::clamp(allowed / needed, least_ratio, 1.0), strictness) / wanted;
}

class Deadline final : public OfRest {
 public:
  explicit Deadline(Duration limit) : limit_(seconds(limit)) { ER_CHECK(limit_ > 0); }

  std::string limit() const override { return fmt::format("deadline of {}", time_text(limit_)); }
  std::optional<double> used(const Snapshot& snapshot, const Prospect& prospect) const override {
    const auto rest = rest_of(snapshot, prospect);
    if (!rest) return {};
    return (seconds(snapshot.elapsed) + rest->seconds) / limit_;
  }

 private:
  double worth_of(const Bill& rest, const Snapshot& snapshot, bool here) const override {
    const double left = std::max(limit_ - seconds(snapshot.elapsed), least_left * limit_);
    return within(rest.money, rest.seconds, left, here);
  }
  std::string advantage() const override { return "in costs, within the deadline"; }

  double limit_;
};

class Budget final : public OfRest {
 public:
  explicit Budget(double limit) : limit_(limit) { ER_CHECK(limit_ > 0); }

  std::string limit() const override { return fmt::format("budget of {}", money_text(limit_)); }
  std::optional<double> used(const Snapshot& snapshot, const Prospect& prospect) const override {
    const auto rest = rest_of(snapshot, prospect);
    if (!rest) return {};
    return (snapshot.spent + rest->money) / limit_;
  }

 private:
  double worth_of(const Bill& rest, const Snapshot& snapshot, bool here) const override {
    const double left = std::max(limit_ - snapshot.spent, least_left * limit_);
    return within(rest.seconds, rest.money, left, here);
  }
  std::string advantage() const override { return "in time, within the budget"; }

  double limit_;
};

}  // namespace

Result<std::vector<UtilityPoint>> parse_utility(std::string_view text) {
  std::vector<UtilityPoint> points;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view item = text.substr(begin, end - begin);
    begin = end + 1;
    const auto point = parse_point(item);
    if (!point) return Error{fmt::format("'{}' is no TIME:MONEY, as in 1h:100,2h:40", item)};
    if (!points.empty() && (point->at <= points.back().at || point->money > points.back().money))
      return Error{
          fmt::format("'{}' is not later than the one before, or worth more; write TIME:MONEY,... "
                      "with times that rise and money that does not",
                      item)};
    points.push_back(*point);
  }
  return points;
}

std::optional<Bill> rest_of(const Snapshot& snapshot, const Prospect& prospect) {
  if (snapshot.samples_left.value_or(0) <= 0) return {};
  const double time = static_cast<double>(*snapshot.samples_left) / prospect.samples_per_s;
  return Bill{time, time / 3600 * prospect.offer.price};
}

double error_of_worth(const Objective& objective, const Prospect& prospect, double error,
                      const Snapshot& snapshot, const Limits& limits) {
  const auto worth = [&](double factor) {
    const Prospect moved{prospect.offer, prospect.samples_per_s * factor};
    return objective.worth(moved, snapshot, limits);
  };
  return std::max(worth(1 + error) / worth(1) - 1, 1 - worth(std::max(1 - error, 0.0)) / worth(1));
}

std::unique_ptr<Objective> scaling() { return std::make_unique<Scaling>(); }
std::unique_ptr<Objective> utility(std::vector<UtilityPoint> points) {
  return std::make_unique<Utility>(std::move(points));
}
std::unique_ptr<Objective> deadline(Duration limit) { return std::make_unique<Deadline>(limit); }
std::unique_ptr<Objective> budget(double limit) { return std::make_unique<Budget>(limit); }

}  // namespace elasticrun::autoscaler
