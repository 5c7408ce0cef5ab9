// Least squares on the logarithm of the step time, for each set of coefficients.
#include "autoscaler/time_model.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/check.hpp"

namespace elasticrun::autoscaler {

namespace {

constexpr std::size_t n = TimeModel::coefficients;
using Row = std::array<double, n>;

// A law is never exact: measures closer than this do not contradict it (Pollux: "about 10 %").
constexpr double law_error = 0.03;
// Laws at most this much worse than the best one, in squared standard errors, are also admitted
// (two standard errors).
constexpr double tolerance = 4;
// The logarithm is not linear in the coefficients, but nearly so around a fitted law: fit again
// this many times.
constexpr int rounds = 4;
// Exponent for parts that overlap: their sum is then nearly the larger of the two.
constexpr double overlap = 8;

bool across(const Place& place) { return place.hosts > 1; }

Row compute_row(const Place& place) { return {1, place.share, 0, 0, 0, 0}; }

Row sync_row(const Place& place, bool far) {
  if (place.size < 2) return {};
  const double more = place.size - 2;
  return far ? Row{0, 0, 0, 0, 1, more} : Row{0, 0, 1, more, 0, 0};
}

double product(const Row& row, const Row& law) {
  return std::inner_product(row.begin(), row.end(), law.begin(), 0.0);
}

struct Equation {
  Row row;
  double value;
  double error;
};

struct System {
  std::array<Row, n> left{};
  Row right{};
};

System normal_equations(std::span<const Equation> equations, const Row& law, bool first) {
  System system;
  for (const Equation& equation : equations) {
    // Around the present law p: ln T - ln p is nearly (T' - p') / p.
    const double predicted = first ? equation.value : product(equation.row, law);
    // Bounded, so that a measure far from the law still leads to a positive law.
    const double away = std::clamp(std::log(equation.value / predicted), -0.9, 0.9);
    const double target = predicted * (1 + away);
    const double weight = 1 / (predicted * equation.error);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j)
        system.left[i][j] += equation.row[i] * equation.row[j] * weight * weight;
      system.right[i] += equation.row[i] * target * weight * weight;
    }
  }
  return system;
}

// Solves for the coefficients in the bit set `used`, the others being zero. Nothing when they
// cannot be told apart or one is not positive (then a smaller set does as well).
std::optional<Row> solve(System system, unsigned used) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < n; ++i)
    if (used >> i & 1) order.push_back(i);
  const auto scale = system.left;
  for (const std::size_t pivot : order) {
    if (!(system.left[pivot][pivot] > 1e-9 * scale[pivot][pivot])) return {};
    for (const std::size_t other : order) {
      if (other == pivot) continue;
      const double factor = system.left[other][pivot] / system.left[pivot][pivot];
      for (const std::size_t column : order)
        system.left[other][column] -= factor * system.left[pivot][column];
      system.right[other] -= factor * system.right[pivot];
    }
  }
  Row law{};
  for (const std::size_t i : order) {
    law[i] = system.right[i] / system.left[i][i];
    if (!(law[i] > 0)) return {};
  }
  return law;
}

struct Fitted {
  Row law{};
  double misfit = 0;  // squared standard errors
  double exponent = 1;
};

std::optional<Fitted> fit(std::span<const Equation> equations, unsigned used) {
  Fitted fitted;
  for (int round = 0; round < rounds; ++round) {
    if (round > 0)
      for (const Equation& equation : equations)
        if (!(product(equation.row, fitted.law) > 0)) return {};
    const auto law = solve(normal_equations(equations, fitted.law, round == 0), used);
    if (!law) return {};
    fitted.law = *law;
  }
  for (const Equation& equation : equations) {
    const double predicted = product(equation.row, fitted.law);
    if (!(predicted > 0)) return {};
    fitted.misfit += std::pow(std::log(equation.value / predicted) / equation.error, 2);
  }
  return fitted;
}

// With an exponent y the law is T^y = sum of (coefficient x column)^y, which is again linear, in
// the powers.
std::vector<Equation> to_the(std::vector<Equation> equations, double exponent) {
  for (Equation& equation : equations) {
    for (double& value : equation.row) value = std::pow(value, exponent);
    equation.value = std::pow(equation.value, exponent);
    equation.error *= exponent;
  }
  return equations;
}

double value(const TimeModel::Law& law, const Row& row) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += std::pow(law.coefficients[i] * row[i], law.exponent);
  return std::pow(sum, 1 / law.exponent);
}

Row both(Row compute, const Row& sync) {
  for (std::size_t i = 0; i < n; ++i) compute[i] += sync[i];
  return compute;
}

}  // namespace

TimeModel::TimeModel(std::span<const Timed> measured) {
  ER_CHECK(!measured.empty());
  std::vector<Equation> equations;
  bool compute_known = false;
  for (const Timed& timed : measured) {
    ER_CHECK(timed.step_s > 0 && timed.error >= 0);
    const double error = std::hypot(timed.error, law_error);
    const Row compute = compute_row(timed.place);
    equations.push_back(
        {both(compute, sync_row(timed.place, across(timed.place))), timed.step_s, error});
    if (timed.compute_s > 0) equations.push_back({compute, timed.compute_s, error});
    compute_known |= timed.compute_s > 0;
    if (timed.place.size < 2) continue;
    (across(timed.place) ? across_seen_ : local_seen_) = true;
    if (!across(timed.place)) continue;
    smallest_across_ =
        smallest_across_ == 0 ? timed.place.size : std::min(smallest_across_, timed.place.size);
  }
  std::vector<Fitted> all;
  for (const double exponent : {1.0, overlap}) {
    // Where compute is known, the rest of the step is what does not overlap it.
    if (exponent != 1 && compute_known) continue;
    const std::vector<Equation> powers = to_the(equations, exponent);
    for (unsigned used = 1; used < 1U << n; ++used)
      if (const auto fitted = fit(powers, used))
        all.push_back({fitted->law, fitted->misfit, exponent});
  }
  ER_CHECK(!all.empty());  // compute alone can always be fitted
  std::ranges::stable_sort(all, {}, &Fitted::misfit);
  // Where no law fits well, a law that fits about as badly as the best one is not ruled out.
  const double limit =
      all.front().misfit +
      tolerance * std::max(1.0, all.front().misfit / static_cast<double>(equations.size()));
  for (const Fitted& fitted : all)
    if (fitted.misfit <= limit) {
      Law law{fitted.law, fitted.exponent};
      for (double& c : law.coefficients) c = std::pow(c, 1 / law.exponent);
      laws_.push_back(law);
    }
}

TimeModel::Range TimeModel::predict(const Place& place, double no_gain_s) const {
  const bool far = across(place);
  const bool seen = place.size < 2 || (far ? across_seen_ : local_seen_);
  Range range;
  bool any = false;
  for (const Law& law : laws_) {
    const Row compute = compute_row(place);
    double best = 0;
    double worst = 0;
    if (seen) {
      worst = best = value(law, both(compute, sync_row(place, far)));
    } else if (far) {
      // Sync across hosts is assumed to be no faster than on one host.
      best = value(law, both(compute, sync_row(place, false)));
      worst = std::max(best, no_gain_s);
    } else if (across_seen_) {
      const Place nearest{.size = smallest_across_, .hosts = 2, .share = 1};
      best = value(law, compute);
      worst = value(law, both(compute, sync_row(nearest, true)));
    } else {
      best = value(law, compute);
      worst = std::max(best, no_gain_s);
    }
    if (!any || best < range.best) range.best = best;
    range.worst = std::max(range.worst, worst);
    any = true;
  }
  return range;
}

}  // namespace elasticrun::autoscaler
