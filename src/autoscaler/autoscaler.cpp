// What all policies have in common, and the table of policies.
#include "autoscaler/autoscaler.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "autoscaler/exec.hpp"
#include "autoscaler/fit.hpp"
#include "autoscaler/fixed.hpp"
#include "autoscaler/goodput.hpp"
#include "autoscaler/throughput.hpp"
#include "autoscaler/walk.hpp"
#include "base/check.hpp"

namespace elasticrun::autoscaler {

namespace {

// Stays at this size because nothing can be considered yet.
Decision waiting(int size, std::string reason, Time again = never) {
  Decision made = decision(size, size, std::move(reason));
  made.waits = true;
  made.again = again;
  return made;
}

using Make = std::unique_ptr<Policy> (*)(const Options&);

// Makes a policy; null if the options lack the aim that it needs.
constexpr std::array<std::pair<std::string_view, Make>, 9> known_policies{{
    {"fixed",
     [](const Options& options) -> std::unique_ptr<Policy> {
       return std::make_unique<Fixed>(options.target);
     }},
    {"throughput",
     [](const Options&) -> std::unique_ptr<Policy> { return std::make_unique<Throughput>(); }},
    {"throughput-walk",
     [](const Options&) -> std::unique_ptr<Policy> { return std::make_unique<ThroughputWalk>(); }},
    {"fit",
     [](const Options&) -> std::unique_ptr<Policy> {
       return std::make_unique<Fit>("fit", scaling());
     }},
    {"goodput",
     [](const Options&) -> std::unique_ptr<Policy> {
       return std::make_unique<Fit>("goodput", goodput());
     }},
    {"utility",
     [](const Options& options) -> std::unique_ptr<Policy> {
       if (options.aims.utility.empty()) return nullptr;
       return std::make_unique<Fit>("utility", utility(options.aims.utility));
     }},
    {"budget",
     [](const Options& options) -> std::unique_ptr<Policy> {
       if (!(options.aims.budget > 0)) return nullptr;
       return std::make_unique<Fit>("budget", budget(options.aims.budget));
     }},
    {"deadline",
     [](const Options& options) -> std::unique_ptr<Policy> {
       if (options.aims.deadline <= Duration::zero()) return nullptr;
       return std::make_unique<Fit>("deadline", deadline(options.aims.deadline));
     }},
    {"exec", [](const Options&) -> std::unique_ptr<Policy> { return std::make_unique<Exec>(); }},
}};

// A size that could not be reached is tried again after 2, 4, 8, ... 64 settling times.
constexpr int most_failure_doublings = 6;

std::string_view name_of(std::string_view policy) {
  return Exec::program_of(policy) ? "exec" : policy;
}

}  // namespace

std::vector<std::string_view> Autoscaler::policies() {
  std::vector<std::string_view> names;
  for (const auto& [name, make] : known_policies) names.push_back(name);
  return names;
}

Result<void> Autoscaler::check_policy(std::string_view policy) {
  const auto program = Exec::program_of(policy);
  if (policy == "exec" || (program && program->find_first_not_of(" \t") == program->npos))
    return Error{"policy 'exec' needs a program that is asked, as in exec:./policy.sh"};
  const auto names = policies();
  if (std::ranges::count(names, name_of(policy)) > 0) return {};
  return Error{
      fmt::format("unknown policy '{}'; the known ones are {}", policy, fmt::join(names, ", "))};
}

Result<Autoscaler> Autoscaler::make(Options options) {
  if (options.limits.min < 1 || options.limits.min > options.limits.max)
    return Error{fmt::format("the limits {}:{} hold no size; use 1 <= MIN <= MAX",
                             options.limits.min, options.limits.max)};
  if (const auto known = check_policy(options.policy); !known) return known.error();
  const auto& [name, make_policy] = *std::ranges::find(known_policies, name_of(options.policy),
                                                       [](const auto& row) { return row.first; });
  auto policy = make_policy(options);
  // A policy that needs an aim has the name of that aim.
  if (!policy) return Error{fmt::format("the policy {0} needs a {0}; give one", name)};
  return Autoscaler(std::move(options), std::move(policy));
}

Autoscaler::Autoscaler(Options options, std::unique_ptr<Policy> policy)
    : policy_(std::move(policy)),
      rule_(sound(options.batch)),
      limits_(std::move(options.limits)),
      settle_(limits_.settle) {
  std::vector<Offer> offers;
  for (const int size : limits_.sizes) offers.push_back({.size = size});
  set_offers(std::move(offers));
}

void Autoscaler::offers_changed(std::vector<Offer> offers, Time now) {
  count_money(now);  // at the prices up to now
  set_offers(std::move(offers));
}

void Autoscaler::set_offers(std::vector<Offer> offers) {
  std::erase_if(offers, [&](const Offer& offer) {
    return offer.size < limits_.min || offer.size > limits_.max;
  });
  std::ranges::stable_sort(offers, {}, &Offer::size);
  const auto doubled = std::ranges::unique(offers, {}, &Offer::size);
  offers.erase(doubled.begin(), doubled.end());
  limits_.sizes.clear();
  for (Offer& offer : offers) {
    if (!(offer.price > 0) || std::isinf(offer.price)) offer.price = offer.size;
    limits_.sizes.push_back(offer.size);
  }
  offers_ = std::move(offers);
  dirty_ = true;
}

void Autoscaler::progress(std::optional<std::int64_t> samples_left) {
  ER_CHECK(!samples_left || *samples_left >= 0);
  samples_left_ = samples_left;
}

double Autoscaler::spent(Time now) const {
  if (size_ == 0) return 0;
  const int paid = changing_ ? std::max(size_, wanted_) : size_;
  return spent_ + offer_of(offers_, paid).price * seconds(now - counted_) / 3600;
}

void Autoscaler::count_money(Time now) {
  spent_ = spent(now);
  counted_ = now;
}

void Autoscaler::change_started(Time now) {
  if (changing_) return;
  count_money(now);
  if (!began_) began_ = now;
  changing_ = true;
  wanted_ = decision_.action == Action::stay ? 0 : decision_.target;
  wanted_batch_ = decision_.global_batch;
  quiet_since_ = now;
  window_.change_started();
  dirty_ = true;
}

void Autoscaler::change_ended(Time now) {
  count_money(now);
  changing_ = false;
  quiet_since_ = now;
  window_.change_ended();
  if (wanted_ != 0 && wanted_ != size_) {
    Failed& failed = failed_[wanted_];
    failed.times = std::min(failed.times + 1, most_failure_doublings);
    failed.until = now + pause_after(failed);
  }
  wanted_ = 0;
  dirty_ = true;
}

void Autoscaler::change_costs(Duration cost) { limits_.settle = std::max(settle_, 10 * cost); }

void Autoscaler::world_changed(Generation generation, int size, std::int64_t global_batch,
                               Time now) {
  ER_CHECK(size > 0 && global_batch >= 0);
  count_money(now);
  batch_ = chosen_batch(size);
  size_ = size;
  global_batch_ = global_batch;
  if (first_batch_ == 0) first_batch_ = global_batch;
  if (!began_) began_ = now;
  quiet_since_ = now;
  failed_.erase(size);
  window_.world_changed(generation, size, global_batch);
  dirty_ = true;
}

// A single worker estimates the noise in another way than several do, and each way starts without
// data. Until the new estimate is good enough the former one is kept. A policy without it would
// judge by throughput for that time, move, start without data there, and so on.
void Autoscaler::hear(const std::optional<Noise>& noise) {
  if (!noise || !(noise->scale() >= 0)) return;
  const double done = noise->scale_invariant_steps;
  if (!noise_ || noise->steps >= std::min(noise_->steps, least_noise_steps)) noise_ = noise;
  noise_->scale_invariant_steps = done;
}

std::optional<WorldSample> Autoscaler::observe(const WorkerSample& sample, Time now) {
  hear(sample.noise);
  auto round = window_.add(sample, now);
  if (!round) return round;
  round->noise = noise_;
  dirty_ = true;
  return round;
}

void Autoscaler::observe(const WorldSample& round, Time now) {
  hear(round.noise);
  dirty_ |= window_.add(round, now);
}

Result<void> Autoscaler::advised(Result<Advice> answer) {
  dirty_ = true;
  return policy_->advised(std::move(answer));
}

Snapshot Autoscaler::snapshot(Time now) const {
  Snapshot seen;
  seen.size = size_;
  seen.change_under_way = changing_;
  seen.curve = window_.curve();
  seen.offers = offers_;
  for (Offer& offer : seen.offers)
    offer.global_batch = autoscaler::plan(rule_, offer.size, {}).global_batch;
  // Measures taken under a different batch rule belong to a different curve.
  if (!policy_->chooses_batch())
    std::erase_if(seen.curve, [&](const Measure& measure) {
      const auto offer = std::ranges::find(seen.offers, measure.size, &Offer::size);
      return offer != seen.offers.end() && offer->global_batch != measure.global_batch;
    });
  const auto here = std::ranges::lower_bound(seen.offers, size_, {}, &Offer::size);
  if (here == seen.offers.end() || here->size != size_) {
    Offer lacking = offer_of(seen.offers, size_);
    lacking.global_batch = global_batch_;
    seen.offers.insert(here, lacking);
  }
  seen.global_batch = global_batch_;
  seen.base_batch = rule().base_batch;
  seen.noise = noise_;
  seen.samples_left = samples_left_;
  seen.elapsed = began_ ? now - *began_ : Duration::zero();
  seen.spent = spent(now);
  return seen;
}

const Decision& Autoscaler::decide(Time now) {
  if (now >= wake_at()) {
    decision_ = consider(now);
    ER_CHECK(!decision_.reason.empty());
    dirty_ = false;
  }
  return decision_;
}

Decision Autoscaler::consider(Time now) {
  if (size_ == 0) return waiting(0, "no world yet");
  if (changing_) return waiting(size_, "a change is under way");
  const Time settled = quiet_since_ + limits_.settle;
  if (now < settled)
    return waiting(
        size_,
        fmt::format("settling for {} after the last change", elasticrun::to_text(limits_.settle)),
        settled);
  if (limits_.sizes.empty())
    return decision(size_, size_,
                    fmt::format("no size between {} and {} can be had", limits_.min, limits_.max));
  const int nearest = std::clamp(size_, limits_.sizes.front(), limits_.sizes.back());
  if (nearest != size_) {
    const bool few = nearest > size_;
    return veto(
        decision(size_, nearest,
                 fmt::format("{} run but {} than {} cannot be, {} to it", size_,
                             few ? "fewer" : "more", nearest, few ? "growing" : "shrinking")),
        now);
  }
  return veto(policy_->decide(snapshot(now), limits_, now), now);
}

Duration Autoscaler::pause_after(const Failed& failed) const {
  return limits_.settle * (1 << failed.times);
}

// Holds back a move to a size that recently could not be reached, whatever rule wants it.
Decision Autoscaler::veto(Decision wanted, Time now) const {
  if (wanted.target == size_) return wanted;
  ER_CHECK(std::binary_search(limits_.sizes.begin(), limits_.sizes.end(), wanted.target));
  const auto found = failed_.find(wanted.target);
  if (found == failed_.end() || now >= found->second.until) return wanted;
  Decision wait = decision(
      size_, size_,
      fmt::format("{} could not be reached, next try {} after the last ({})", wanted.target,
                  elasticrun::to_text(pause_after(found->second)), wanted.reason));
  wait.figures = std::move(wanted.figures);
  wait.forecast = std::move(wanted.forecast);
  wait.again = found->second.until;
  return wait;
}

// The batch rule, completed with the first world's batch and the needs of the policy.
BatchRule Autoscaler::rule() const {
  BatchRule rule = rule_;
  if (rule.base_batch == 0) rule.base_batch = first_batch_;
  rule.measure_noise = policy_->chooses_batch();
  return rule;
}

// A chosen batch holds until another is chosen, also in worlds that the policy did not ask for.
std::int64_t Autoscaler::chosen_batch(int size) const {
  const bool chosen = size == (changing_ ? wanted_ : decision_.target);
  const std::int64_t with_it = changing_ ? wanted_batch_ : decision_.global_batch;
  return chosen && with_it > 0 ? with_it : batch_;
}

BatchPlan Autoscaler::plan(int size, std::vector<double> weights) const {
  BatchRule bounded = rule();
  if (const std::int64_t most = chosen_batch(size); most > 0)
    bounded.max_batch = bounded.max_batch > 0 ? std::min(bounded.max_batch, most) : most;
  return autoscaler::plan(bounded, size, std::move(weights));
}

}  // namespace elasticrun::autoscaler
