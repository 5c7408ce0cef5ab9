// The global batch G = min(b k, B) for k workers, and what follows from it.
#include "autoscaler/batch_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.hpp"

namespace elasticrun::autoscaler {

namespace {

constexpr std::array<std::pair<std::string_view, LrRule>, 4> lr_rules{
    {{"none", LrRule::none},
     {"linear", LrRule::linear},
     {"sqrt", LrRule::sqrt},
     {"adascale", LrRule::adascale}}};

std::int64_t global_batch(const BatchRule& rule, int size) {
  const std::int64_t named = std::min(rule.max_batch, most_global_batch);
  if (rule.batch == 0) return named;
  const std::int64_t cap = named > 0 ? named : most_global_batch;
  // Written as a division, so that an absurd b cannot overflow.
  return rule.batch > cap / size ? cap : rule.batch * size;
}

// A fast worker's share may exceed what the user named as efficient, and perhaps what fits into the
// device: the share is then computed in pieces of at most b.
std::int64_t micro_batch(const BatchRule& rule, std::int64_t global,
                         const std::vector<double>& weights) {
  if (rule.batch == 0 || weights.empty()) return 0;
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  const double largest = *std::max_element(weights.begin(), weights.end());
  const double share = std::ceil(static_cast<double>(global) * largest / all);
  return share > static_cast<double>(rule.batch) ? rule.batch : 0;
}

double lr_factor(const BatchRule& rule, std::int64_t global) {
  if (rule.base_batch == 0 || global == 0) return 1;
  const double ratio = static_cast<double>(global) / static_cast<double>(rule.base_batch);
  switch (rule.lr_rule) {
    case LrRule::none:
    case LrRule::adascale:
      return 1;
    case LrRule::linear:
      return ratio;
    case LrRule::sqrt:
      return std::sqrt(ratio);
  }
  return 1;
}

}  // namespace

Result<LrRule> parse_lr_rule(std::string_view name) {
  for (const auto& [known, rule] : lr_rules)
    if (name == known) return rule;
  return Error{
      fmt::format("unknown learning-rate rule '{}'; use none, linear, sqrt or adascale", name)};
}

std::string_view to_text(LrRule rule) {
  for (const auto& [name, known] : lr_rules)
    if (rule == known) return name;
  return "none";
}

BatchRule sound(BatchRule rule) {
  for (std::int64_t* batch : {&rule.max_batch, &rule.batch, &rule.base_batch})
    *batch = std::max<std::int64_t>(*batch, 0);
  return rule;
}

BatchPlan plan(const BatchRule& rule, int size, std::vector<double> weights) {
  ER_CHECK(size > 0);
  ER_CHECK(rule.max_batch >= 0 && rule.batch >= 0 && rule.base_batch >= 0);
  ER_CHECK(weights.empty() || weights.size() == static_cast<std::size_t>(size));
  for (const double weight : weights) ER_CHECK(std::isfinite(weight) && weight >= 0);
  ER_CHECK(weights.empty() || *std::ranges::max_element(weights) > 0);
  BatchPlan result;
  result.global_batch = global_batch(rule, size);
  result.micro_batch = micro_batch(rule, result.global_batch, weights);
  result.lr_factor = lr_factor(rule, result.global_batch);
  result.adascale = rule.lr_rule == LrRule::adascale;
  if (result.adascale || rule.measure_noise)
    result.noise_base = rule.base_batch > 0 ? rule.base_batch : result.global_batch;
  result.weights = std::move(weights);
  return result;
}

}  // namespace elasticrun::autoscaler
