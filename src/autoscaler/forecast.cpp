// The most optimistic size decides whether the limit can be met; if so, the size with the best
// expected worth gives the time and the money.
#include "autoscaler/forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "autoscaler/decision_text.hpp"

namespace elasticrun::autoscaler {

namespace {

Prospect hopeful(const Chance& chance) { return {chance.offer, chance.high}; }
Prospect likely(const Chance& chance) {
  return {chance.offer, std::sqrt(chance.low * chance.high)};
}

Bill whole_job(const Snapshot& snapshot, const Prospect& prospect) {
  const auto rest = rest_of(snapshot, prospect);
  return {seconds(snapshot.elapsed) + rest->seconds, snapshot.spent + rest->money};
}

}  // namespace

std::optional<Forecast> foresee(const Objective& objective, const Snapshot& snapshot,
                                const Limits& limits, std::span<const Chance> chances,
                                std::optional<bool> before) {
  const auto needed = [&](const Chance& chance) {
    return objective.used(snapshot, hopeful(chance)).value_or(0);
  };
  if (chances.empty() || needed(chances.front()) == 0) return {};
  const Chance& best = *std::ranges::min_element(chances, {}, needed);
  const Chance& chosen = *std::ranges::max_element(chances, {}, [&](const Chance& chance) {
    return objective.worth(likely(chance), snapshot, limits);
  });
  Forecast made;
  made.met = needed(best) <= (before == false ? 1 / (1 + margin) : 1);
  const Prospect told = made.met ? likely(chosen) : hopeful(best);
  const Bill bill = whole_job(snapshot, told);
  made.seconds = bill.seconds;
  made.cost = bill.money;
  const bool sure = made.met && objective.used(snapshot, told).value_or(0) <= 1;
  made.words =
      fmt::format("the {} {} be met: {} and {} of money {} in all, with {}", objective.limit(),
                  sure             ? "can"
                  : made.met       ? "may still"
                  : before == true ? "can no longer"
                                   : "cannot",
                  time_text(bill.seconds), money_text(bill.money),
                  made.met ? "expected" : "needed at best", workers_text(told.offer.size));
  return made;
}

}  // namespace elasticrun::autoscaler
