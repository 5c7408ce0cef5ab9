// See sizing.hpp.
#include "job/core/course/sizing.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "job/report/advice.hpp"
#include "wire/limits.hpp"

namespace elasticrun::job::course {
namespace {

autoscaler::WorkerSample to_report(WorkerId worker, const wire::Sample& sample) {
  autoscaler::WorkerSample report{worker,
                                  sample.generation,
                                  sample.step,
                                  sample.steps,
                                  sample.samples,
                                  Duration(sample.wall_ns),
                                  Duration(sample.compute_ns)};
  if (!sample.noise.empty()) report.noise = sample.noise.front();
  return report;
}

void record(const autoscaler::WorldSample& round, Actions& out) {
  std::vector<std::pair<std::string, report::Value>> fields{
      {"generation", static_cast<std::int64_t>(round.generation.value)},
      {"step", round.step.value},
      {"samples_per_s", round.samples_per_s},
      {"global_batch", round.batch},
      {"step_ms", milliseconds(round.step_time)},
      {"compute_ms", milliseconds(round.compute_time)},
      {"least_compute_ms", milliseconds(round.least_compute)},
      {"most_compute_ms", milliseconds(round.most_compute)}};
  if (round.noise) {
    fields.push_back({"noise_scale", round.noise->scale()});
    fields.push_back({"scale_invariant_steps", round.noise->scale_invariant_steps});
  }
  out.record("sample", std::move(fields));
}

}  // namespace

Result<Sizing> Sizing::make(const JobSpec& spec) {
  autoscaler::Options options;
  options.policy = spec.policy;
  options.target = spec.start;
  options.batch = spec.batch;
  options.aims = spec.aims;
  options.limits.min = spec.limits.min;
  options.limits.max =
      spec.limits.max > 0 ? spec.limits.max : static_cast<int>(wire::world_size_max);
  options.limits.settle = spec.deadlines.settle;
  auto scaler = autoscaler::Autoscaler::make(std::move(options));
  if (!scaler) return scaler.error();
  return Sizing(spec, std::move(*scaler));
}

Sizing::Sizing(const JobSpec& spec, autoscaler::Autoscaler scaler)
    : scaler_(std::move(scaler)),
      shares_(spec.deadlines.settle),
      stragglers_(autoscaler::StragglerRule{.confirm = spec.deadlines.straggler_time}) {}

void Sizing::ready(const JobSpec& spec, const wire::TrainSpec& train) {
  uncounted_.ready(train);
  if (!work_.asked(train)) return;
  autoscaler::BatchRule rule = spec.batch;
  if (rule.batch == 0) rule.batch = train.batch;
  if (rule.base_batch == 0) rule.base_batch = train.base_batch;
  scaler_.batch_rule_changed(rule);
}

void Sizing::world_formed(const rendezvous::WorldFormed& formed,
                          std::vector<autoscaler::Member> members, Time now) {
  const wire::World& world = formed.world;
  std::vector<WorkerId> workers;
  for (const auto& member : members) workers.push_back(member.worker);
  stragglers_.world_changed(world.generation, workers);
  scaler_.world_changed(world.generation, static_cast<int>(members.size()), world.plan.global_batch,
                        now);
  keeper_ = world.plan.keeper;
  // In a world where one member computes nothing, its share says nothing about its speed.
  if (keeper_ < 0 && shares_.world_changed(world.generation, std::move(members),
                                           world.plan.global_batch, world.plan.weights))
    scaler_.shares_changed();
  work_.world_changed(formed.step, world.plan.global_batch);
}

bool Sizing::sample(const JobSpec& spec, WorkerId worker, const wire::Sample& sample, Time now,
                    Actions& out) {
  const autoscaler::WorkerSample report = to_report(worker, sample);
  stragglers_.observe(report, now);
  if (spec.shares_by_speed && !unsettled_) shares_.observe(report);
  const auto round = scaler_.observe(report, now);
  if (round) {
    shares_.observe(*round);
    record(*round, out);
  }
  if (uncounted_.hear(sample) && scaler_.policy() != "fixed")
    out.log(report::LogLevel::error,
            fmt::format("the program's own loop does not say how many samples a step has, so "
                        "policy {} cannot measure it and the size stays as it is; call "
                        "elasticrun_samples (C++: job.samples) before each commit",
                        scaler_.policy()));
  return round.has_value();
}

void Sizing::run_begins(int size, Duration cost, Time now) {
  run_ = run_.next();
  run_step_ = StepId{0};
  scaler_.change_costs(cost);
  scaler_.world_changed(run_, size, scaler_.plan(size, {}).global_batch, now);
}

void Sizing::progress(const wire::agent::Progress& made, Time now, Actions& out) {
  auto round = scaler_.observe(autoscaler::WorkerSample{.worker = made.worker,
                                                        .generation = run_,
                                                        .step = run_step_,
                                                        .steps = made.steps,
                                                        .samples = made.samples,
                                                        .wall = Duration(made.wall_ns)},
                               now);
  if (!round) return;
  run_step_ = StepId{run_step_.value + round->steps};
  round->step = run_step_;
  record(*round, out);
}

// A program may fail each time with other numbers or names in its text: each kind is logged once.
void Sizing::advised(const JobSpec& spec, const Result<std::string>& output, Actions& out) {
  const auto followed = scaler_.advised(report::read_advice(output));
  if (followed) return;
  const std::string& why = followed.error().text;
  if (!bad_advice_.insert(why.substr(0, why.find_first_of("0123456789:'"))).second) return;
  out.record("advice_ignored", {{"reason", why}});
  out.log(report::LogLevel::error,
          fmt::format("--policy {}: {}; the size stays as it is", spec.policy, why));
}

void Sizing::unsettled(bool now_it_is, Time now) {
  if (now_it_is && !unsettled_) scaler_.change_started(now);
  if (!now_it_is && unsettled_) scaler_.change_ended(now);
  unsettled_ = now_it_is;
}

namespace {

std::string without_digits(std::string text) {
  std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
  return text;
}

}  // namespace

std::optional<std::string> Sizing::decide(const JobSpec& spec, Time now, Actions& out) {
  scaler_.progress(work_.left());
  const autoscaler::Decision decision = scaler_.decide(now);
  // Whether a deadline or a budget will be met is logged once, and again when that changes.
  if (decision.forecast && decision.forecast->met != forecast_met_) {
    forecast_met_ = decision.forecast->met;
    out.log(*forecast_met_ ? report::LogLevel::info : report::LogLevel::error,
            decision.forecast->words);
  }
  if (const auto question = scaler_.question()) out.add(Ask{report::question_text(*question)});
  // Another batch for the present workers leaves the number of wanted workers as it is.
  const bool rebatch = decision.action == autoscaler::Action::rebatch;
  const int target = rebatch ? target_ : decision.target;
  const bool moves = decision.action != autoscaler::Action::stay &&
                     (target != target_ || decision.global_batch != target_batch_);
  if (decision.waits) return {};
  // A decision to stay that differs from the last one only in its figures is no news.
  const bool news = moves || last_decision_ != std::pair(target, without_digits(decision.reason));
  last_reason_ = decision.reason;
  last_decision_ = {target, without_digits(decision.reason)};
  if (!news) return {};
  std::vector<std::pair<std::string, report::Value>> fields{
      {"policy", std::string(scaler_.policy())},
      {"action", std::string(autoscaler::to_text(decision.action))},
      {"target", static_cast<std::int64_t>(decision.target)},
      {"reason", decision.reason}};
  if (decision.global_batch > 0) fields.emplace_back("global_batch", decision.global_batch);
  for (const auto& figure : decision.figures) fields.emplace_back(figure.name, figure.value);
  out.record("decision", std::move(fields));
  if (spec.explain || moves)
    out.log(report::LogLevel::info, fmt::format("{}: {}", scaler_.policy(), decision.reason));
  if (!moves) return {};
  target_ = target;
  target_batch_ = decision.global_batch;
  return decision.reason;
}

BatchPlan Sizing::plan(const std::vector<wire::Member>& members,
                       const std::vector<autoscaler::Member>& typed, bool keeper) const {
  const auto size = static_cast<int>(members.size());
  const std::int64_t global_batch = scaler_.plan(size, {}).global_batch;
  BatchPlan batch = scaler_.plan(size, shares_.weights(global_batch, typed));
  if (keeper && size > 1) {
    const auto holder = std::ranges::find(members, true, &wire::Member::holds_state);
    batch.keeper = static_cast<std::int32_t>(holder - members.begin()) % size;
    if (batch.weights.empty()) batch.weights.assign(members.size(), 1);
    batch.weights[static_cast<std::size_t>(batch.keeper)] = 0;
  }
  return batch;
}

std::optional<std::string> Sizing::better_plan(int size, bool keeper, bool replaces,
                                               const std::string& why, Time now) {
  if (keeper_ >= 0 && !keeper) return "the step that had killed workers is done";
  // Only a batch that the policy chose counts: the batches that workers give may differ.
  if (target_batch_ > 0 && scaler_.plan(size, {}).global_batch != work_.global_batch())
    return why.empty() ? "another batch" : why;
  if (replaces && stragglers_.wake_at() != never) return {};
  return shares_.better(now);
}

}  // namespace elasticrun::job::course
