// What the controller of a case is told, and what it does then.
#include "policy_stage.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "job/core/hosts/prices.hpp"
#include "job/report/advice.hpp"

namespace elasticrun::sim {

namespace {

using namespace std::chrono_literals;

Duration lasting(double s) { return Duration(std::llround(std::clamp(s * 1e9, 1.0, 1e18))); }

autoscaler::Autoscaler make(const Setting& setting) {
  auto made = autoscaler::Autoscaler::make(setting.options);
  require(made.has_value(), "lawful options are taken", made ? "" : made.error().text);
  return std::move(*made);
}

}  // namespace

Stage::Stage(std::uint64_t seed, Tell tell)
    : tell_(std::move(tell)),
      rng_(mix(seed)),
      setting_(draw_setting(rng_)),
      scaler_(make(setting_)),
      shares_(setting_.options.limits.settle) {
  if (tell_) tell_(fmt::format("seed {}: {}", seed, describe(setting_)));
  left_ = rng_.chance(0.1) ? std::numeric_limits<std::int64_t>::max()
                           : static_cast<std::int64_t>(std::pow(10, 10 * rng_.uniform()));
}

void Stage::run() {
  for (std::uint64_t hosts = 1 + rng_.below(10); hosts > 0; --hosts) new_host();
  staff();
  for (int turn = 0; turn < setting_.turns; ++turn) {
    if (rng_.chance(setting_.mishap)) mishap();
    end_notices();
    if (lost_) return;
    round();
    answer();
    replace_stragglers();
    decide();
    staff();
    check_money();
  }
}

// ---------------------------------------------------------------- what the controller is told

void Stage::slots_changed() {
  std::vector<job::SlotId> slots;
  std::vector<int> by_host;
  std::vector<double> prices;
  for (const Host& host : hosts_) {
    if (!host.listed) continue;
    by_host.push_back(host.slots);
    for (int slot = 0; slot < host.slots; ++slot) slots.push_back({host.id, slot});
    prices.resize(slots.size(), host.price / host.slots);
  }
  slots_.set(slots);
  sizes_ =
      launcher::hosts::reachable_sizes(by_host, setting_.unit, setting_.limits, setting_.start);
  scaler_.offers_changed(job::hosts::offers(sizes_, slots, prices, 1), now_);
  say("sizes that can be had: {}", fmt::join(sizes_, " "));
  const int within = launcher::hosts::slots_within(by_host, setting_.limits.max_hosts);
  const int most = setting_.limits.max > 0 ? std::min(setting_.limits.max, within) : within;
  if (members_.empty()) target_ = setting_.start > 0 ? std::min(setting_.start, most) : most;
}

autoscaler::WorkerSample Stage::report_of(std::size_t rank, double step_s) {
  const double batch = global_batch_ > 0 ? static_cast<double>(global_batch_) : 64.0 * size();
  const double steps = std::clamp(std::floor(seconds(setting_.report) / step_s), 1.0, 1e6);
  const double compute = setting_.step_s * parts_[rank] * size() / host_of(members_[rank]).speed;
  autoscaler::WorkerSample sample{.worker = members_[rank], .generation = generation_};
  sample.steps = std::llround(steps);
  sample.samples = std::llround(steps * batch * parts_[rank]);
  sample.wall = lasting(steps * step_s);
  sample.compute = std::min(sample.wall, lasting(steps * compute));
  if (rank == 0 && setting_.tells_noise)
    sample.noise = Noise{1, 50 * (1 + rng_.uniform()), 200, size() == 1, 7};
  return sample;
}

// Members step together, as fast as the slowest.
void Stage::round() {
  now_ += setting_.report;
  double slowest = 0;
  for (std::size_t rank = 0; rank < members_.size(); ++rank)
    slowest = std::max(slowest, parts_[rank] * size() / host_of(members_[rank]).speed);
  double step_s = setting_.step_s * slowest + setting_.sync_s * (size() - 1);
  step_s *= std::exp(setting_.noise * 3.5 * (rng_.uniform() - 0.5));
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    if (rng_.chance(setting_.silent)) continue;
    autoscaler::WorkerSample sample = report_of(rank, step_s);
    if (rank == 0)
      left_ -= std::min(left_, static_cast<std::int64_t>(
                                   static_cast<double>(global_batch_) *
                                   static_cast<double>(std::max<std::int64_t>(sample.steps, 0))));
    if (rng_.chance(setting_.garbled)) {
      garble(sample, rng_);
      say("worker {} reports in generation {}: {} steps, {} samples, {} ns, {} ns of compute{}",
          sample.worker.value, sample.generation.value, sample.steps, sample.samples,
          sample.wall.count(), sample.compute.count(),
          sample.noise
              ? fmt::format(", noise {} of {}", sample.noise->variance, sample.noise->square)
              : "");
    }
    hear(sample);
  }
}

void Stage::hear(const autoscaler::WorkerSample& sample) {
  stragglers_.observe(sample, now_);
  if (!unsettled_) shares_.observe(sample);
  const auto round = scaler_.observe(sample, now_);
  if (!round) return;
  shares_.observe(*round);
  const bool sound = std::isfinite(round->samples_per_s) && round->samples_per_s > 0 &&
                     round->step_time > Duration::zero() && round->steps > 0 &&
                     round->compute_time >= Duration::zero();
  require(sound, "rounds make sense",
          fmt::format("{} samples/s, step {} ns, {} steps", round->samples_per_s,
                      round->step_time.count(), round->steps));
}

// The answer comes after some time, and now and then without a question.
void Stage::answer() {
  if (rng_.chance(0.02)) (void)scaler_.advised(autoscaler::Advice{3, "nobody has asked"});
  if (!asked_ || !rng_.chance(0.4)) return;
  const auto printed = print_advice(*asked_, rng_);
  asked_.reset();
  const auto followed = scaler_.advised(job::report::read_advice(printed));
  say("the program prints {}{}", printed ? *printed : printed.error().text,
      followed ? "" : ": " + followed.error().text);
}

// ---------------------------------------------------------------- what a controller does

void Stage::decide() {
  if (members_.empty() || now_ < scaler_.wake_at()) return;
  scaler_.progress(setting_.tells_work ? std::optional(left_) : std::nullopt);
  const autoscaler::Decision made = scaler_.decide(now_);
  if (std::exchange(last_reason_, made.reason) != made.reason)
    say("{}: {}", autoscaler::to_text(made.action), made.reason);
  check(made);
  if (auto question = scaler_.question()) {
    check_question(*question);
    asked_ = std::move(*question);
  }
  if (made.action != autoscaler::Action::rebatch && made.action != autoscaler::Action::stay)
    target_ = made.target;
}

void Stage::replace_stragglers() {
  for (const autoscaler::Straggler& one : stragglers_.confirmed(now_)) {
    const job::workers::Worker* worker = workers_.find(one.worker);
    if (!worker || !job::workers::has_substitute(slots_, workers_, target_, now_)) continue;
    say("worker {} is slow: {:.2f}", one.worker.value, one.score);
    slots_.quarantine(worker->slot, now_);
  }
}

void Stage::staff() {
  end_starts();
  const auto wanted = job::workers::wanted_slots(slots_, workers_, target_, now_, members_);
  start_missing(wanted);
  std::vector<WorkerId> unwanted;
  for (const auto& [id, worker] : workers_.rows())
    if (std::ranges::count(members_, id) == 0 && std::ranges::count(wanted, worker.slot) == 0)
      unwanted.push_back(id);
  for (const WorkerId id : unwanted) workers_.erase(id);
  const bool under_way = propose(wanted);
  const bool starting =
      std::ranges::any_of(workers_.rows(), [](const auto& one) { return !one.second.was_ready(); });
  settle(!under_way && !starting && !members_.empty());
}

void Stage::start_missing(const std::vector<job::SlotId>& wanted) {
  for (const job::SlotId slot : wanted)
    if (!workers_.in(slot)) ready_at_[workers_.order(slot, never)] = now_ + rng_.below(3) * 1s;
}

void Stage::end_starts() {
  for (const auto& [id, at] : std::exchange(ready_at_, {})) {
    const job::workers::Worker* worker = workers_.find(id);
    if (!worker) continue;
    if (at > now_) {
      ready_at_[id] = at;
    } else if (rng_.chance(setting_.start_fails)) {
      say("worker {} does not start", id.value);
      slots_.failed(worker->slot, now_);
      workers_.erase(id);
    } else {
      workers_.ready(id, now_);
    }
  }
}

// True: a change has begun and is not over yet.
bool Stage::propose(const std::vector<job::SlotId>& wanted) {
  std::set<WorkerId> next;
  for (const job::SlotId slot : wanted) {
    const auto id = workers_.in(slot);
    if (id && !workers_.find(*id)->was_ready()) return false;
    if (id) next.insert(*id);
  }
  if (next.empty() || std::ssize(next) < setting_.limits.min) return false;
  std::vector<WorkerId> members;
  for (const WorkerId member : members_)
    if (next.erase(member) > 0) members.push_back(member);
  members.insert(members.end(), next.begin(), next.end());
  if (members == members_) {
    const bool other_batch = scaler_.plan(size(), {}).global_batch != global_batch_;
    const auto shares = other_batch || unsettled_ ? std::nullopt : shares_.better(now_);
    if (shares) say("{}", *shares);
    if (!other_batch && !shares) return false;
  }
  if (rng_.chance(0.3)) return true;
  if (rng_.chance(setting_.change_fails)) {
    say("the change to {} is dropped", names(members));
    settle(false);
    return false;
  }
  check_members(members);
  settle(false);
  form(std::move(members));
  return false;
}

void Stage::form(std::vector<WorkerId> members) {
  members_ = std::move(members);
  generation_ = Generation(generation_.value + 1 + rng_.below(2));
  const auto with_types = typed();
  const std::int64_t batch = scaler_.plan(size(), {}).global_batch;
  const BatchPlan plan = scaler_.plan(size(), shares_.weights(batch, with_types));
  say("world {} of {}: workers {}, batch {}, shares {}", generation_.value, size(), names(members_),
      plan.global_batch,
      plan.weights.empty() ? "equal" : fmt::format("{}", fmt::join(plan.weights, " ")));
  check(plan, size());
  global_batch_ = plan.global_batch;
  const double all = std::accumulate(plan.weights.begin(), plan.weights.end(), 0.0);
  parts_.assign(members_.size(), 1.0 / size());
  for (std::size_t rank = 0; rank < plan.weights.size(); ++rank)
    parts_[rank] = plan.weights[rank] / all;
  stragglers_.world_changed(generation_, members_);
  scaler_.world_changed(generation_, size(), global_batch_, now_);
  if (shares_.world_changed(generation_, with_types, global_batch_, plan.weights))
    scaler_.shares_changed();
  quiet_since_ = now_;
}

// While workers start and groups form, the durations of steps mean nothing.
void Stage::settle(bool settled) {
  if (settled && unsettled_) scaler_.change_ended(now_);
  if (!settled && !unsettled_) scaler_.change_started(now_);
  if (settled == unsettled_) quiet_since_ = now_;
  unsettled_ = !settled;
}

const Stage::Host& Stage::host_of(WorkerId worker) const {
  return *std::ranges::find(hosts_, workers_.find(worker)->slot.host, &Host::id);
}

std::vector<autoscaler::Member> Stage::typed() const {
  std::vector<autoscaler::Member> typed;
  for (const WorkerId member : members_) {
    const Host& host = host_of(member);
    typed.push_back({member, host.type.empty() ? host.name : host.type});
  }
  return typed;
}

void play_controller(std::uint64_t seed, const Tell& tell) { Stage(seed, tell).run(); }

}  // namespace elasticrun::sim
