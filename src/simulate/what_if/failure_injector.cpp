// Failures of hosts, and the response to slow ones (simulated_job.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "autoscaler/decision_text.hpp"
#include "simulate/what_if/simulated_job.hpp"

namespace elasticrun::simulate::what_if {

namespace {

Duration exponential(double mean_s, double chance) {
  return from_seconds(std::min(-std::log(1 - chance) * mean_s, 1e9));
}

}  // namespace

// Schedules the next failure of a kind, as a Poisson process over all hosts together. The host and
// any other random choice are drawn when the failure comes, whether the job uses that host or not.
void SimulatedJob::await(Rng& rng, double per_hour, Failure failure) {
  if (!(per_hour > 0)) return;
  const double mean_s = 3600 / (per_hour * fleet_.hosts());
  queue_.after(exponential(mean_s, rng.uniform()), [this, &rng, per_hour, failure] {
    const auto host = rng.below(static_cast<std::uint64_t>(fleet_.hosts()));
    (this->*failure)(static_cast<int>(host), rng.uniform());
    await(rng, per_hour, failure);
  });
}

void SimulatedJob::fail(int host, double) {
  if (!fleet_.listed(host)) return;
  if (fleet_.has_workers(host)) ++out_.failures;
  go(host, Duration::zero(), "is lost");
}

void SimulatedJob::revoke(int host, double) {
  if (!fleet_.listed(host)) return;
  if (fleet_.has_workers(host)) ++out_.revoked;
  go(host, conditions_.notice, "is taken away");
}

// The host gets no more workers from now on and is gone after the notice. Until then the job can
// replace its workers or shrink.
void SimulatedJob::go(int host, Duration notice, std::string_view how) {
  if (fleet_.has_workers(host)) note(fmt::format("{} {}", name(host), how));
  fleet_.list(host, false);
  understaffed_ = true;
  queue_.at(now_ + notice, [this, host] { gone(host); });
  queue_.at(now_ + std::max(notice, conditions_.new_host), [this, host] {
    fleet_.list(host, true);
    understaffed_ = true;
  });
}

void SimulatedJob::gone(int host) {
  fleet_.set_speed(host, 1);
  understaffed_ = true;
  if (fleet_.lose(host) == 0 || fleet_.members().empty()) return;
  settle(false);
  pass(conditions_.recovery);
  world();
}

void SimulatedJob::slow(int host, double chance) {
  if (!fleet_.listed(host) || fleet_.speed(host) < 1) return;
  if (fleet_.has_workers(host)) ++out_.slow_phases;
  fleet_.set_speed(host, conditions_.slow_speed);
  pace();
  queue_.at(now_ + exponential(seconds(conditions_.slow_time), chance), [this, host] {
    fleet_.set_speed(host, 1);
    pace();
  });
}

std::vector<autoscaler::Member> SimulatedJob::typed_members() const {
  std::vector<autoscaler::Member> typed;
  for (const WorkerId member : fleet_.members()) {
    const auto host = static_cast<std::size_t>(fleet_.slot(member).host.value);
    const launcher::hosts::Host& described = curve_.hosts()[host];
    typed.push_back({member, described.type.empty() ? described.name : described.type});
  }
  return typed;
}

// Simulates the members' reports of their own compute, which alone shows which of them are slow.
// They are drawn less often than rounds are, because there is one for each member.
void SimulatedJob::watch() {
  if (now_ < watch_at_) return;
  watch_at_ = now_ + 10 * conditions_.report;
  if (!hosts_are_slow()) return;
  report_compute();
  if (conditions_.stragglers != job::StragglerAction::off) replace_stragglers();
  if (unsettled_ || !better_shares()) return;
  change(fleet_.members());
  understaffed_ = true;  // staff() ends the change
}

// Gives the members better shares, but not while a slow worker may turn out to be one to replace.
bool SimulatedJob::better_shares() {
  const bool replaces = conditions_.stragglers == job::StragglerAction::replace &&
                        fleet_.has_substitute(target_, now_);
  if (!conditions_.shares_by_speed || (replaces && stragglers_.wake_at() != never)) return false;
  const auto why = shares_.better(now_);
  if (why) note(*why);
  return why.has_value();
}

void SimulatedJob::replace_stragglers() {
  std::map<std::pair<HostId, bool>, std::vector<autoscaler::Straggler>> found;
  for (const autoscaler::Straggler& one : stragglers_.confirmed(now_)) {
    const job::SlotId slot = fleet_.slot(one.worker);
    const bool replace = conditions_.stragglers == job::StragglerAction::replace &&
                         fleet_.has_substitute(target_, now_);
    found[{slot.host, replace}].push_back(one);
    ++out_.stragglers;
    if (!replace) continue;
    ++out_.replaced;
    fleet_.slots().quarantine(slot, now_);
    understaffed_ = true;
  }
  for (const auto& [where, slow] : found)
    note(fmt::format("{} of {} at {:.2f} of the others' speed for {}: {}",
                     autoscaler::workers_text(static_cast<int>(slow.size())),
                     name(static_cast<int>(where.first.value)), slow.front().score,
                     elasticrun::to_text(slow.front().slow_for),
                     where.second ? "replaced" : "reported"));
}

void SimulatedJob::report_compute() {
  const double compute = compute_s_ > 0 ? compute_s_ : step_s_;
  for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
    const WorkerId member = fleet_.members()[rank];
    if (!(parts_[rank] > 0)) continue;
    autoscaler::WorkerSample sample{.worker = member, .generation = generation_};
    sample.steps = static_cast<std::int64_t>(unwatched_);
    sample.samples = std::max<std::int64_t>(1, std::llround(unwatched_ * batch_ * parts_[rank]));
    sample.compute = from_seconds(unwatched_ * compute * parts_[rank] * size() /
                                  fleet_.speed(member) * noise(unwatched_));
    stragglers_.observe(sample, now_);
    shares_.observe(sample);
  }
  unwatched_ = 0;
}

}  // namespace elasticrun::simulate::what_if
