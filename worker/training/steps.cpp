// See steps.hpp.
#include "worker/training/steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/check.hpp"
#include "worker/core/agreement.hpp"

namespace elasticrun::worker::training {
namespace {

// Numbers that ride on a step's reduction: the votes, the number of new sum names, what shows
// whether all hold the same state, and room for all sums. Their count must not depend on the names,
// which a worker with an empty share does not know yet.
constexpr std::size_t votes_at = 0, new_names_at = core::Votes::Row().size();
constexpr std::size_t state_at = new_names_at + 1;
constexpr std::size_t figures_at = state_at + Divergence::Row().size();
constexpr std::size_t extras = figures_at + Sums::max_names;

}  // namespace

Steps::~Steps() { stop_buckets(); }

Steps::Steps(control::WorldSession& session)
    : session_(session),
      reduction_(session.table(), extras),
      divergence_(session),
      watch_(session.table()) {
  for (elasticrun_step& step : ring_) step.reduction = &reduction_;
}

// The call that follows, for the controller.
void Steps::make_ready(const elasticrun_train_options& options) {
  session_.ready({.call = call_,
                  .samples = options.samples,
                  .epochs = options.epochs,
                  .batch = options.batch,
                  .base_batch = options.base_batch});
}

std::int64_t Steps::enter(const elasticrun_train_options& options) {
  const std::int64_t call = ++call_;
  const core::Progress& progress = session_.progress;
  const auto none_is_left = [&] {
    return progress.train_call == call && options.epochs > 0 && progress.epoch >= options.epochs;
  };
  bool goes_on = progress.train_call <= call;
  if (goes_on) {
    make_ready(options);
    goes_on = session_.await();
    while (goes_on && none_is_left()) {
      session_.done(call);
      goes_on = session_.await();
    }
  }
  --call_;
  if (!goes_on || progress.train_call > call) return every_epoch;
  return progress.train_call == call ? progress.epoch : 0;
}

void Steps::begin(const elasticrun_train_options& options, EpochListener listener) {
  options_ = options;
  listener_ = std::move(listener);
  reduction_.use_buckets(static_cast<std::size_t>(options.bucket_bytes));
  ++call_;
  begin_call();
  passed_ = session_.progress.train_call > call_;
  if (!passed_) make_ready(options);
  state_ = State::between;
  stays_ = false;
}

void Steps::end() noexcept {
  stop_buckets();
  state_ = State::outside;
  step_->in_compute = false;
  before_end_.reset();
  session_.member_lock().update([](core::Member& member) { member.outside(); });
  session_.meter().enter(control::StepMeter::Phase::idle, control::now());
}

// Sets the progress to the begin of this call. The world begins with that of the first holder of
// the state; a newcomer's is replaced.
void Steps::begin_call() {
  if (ended_with_) {
    const std::string changed = ended_with_->changed_since(session_.table());
    if (!changed.empty())
      session_.fail(ELASTICRUN_MISUSE,
                    fmt::format("train: {} changed since the last call of train, which a newcomer "
                                "would not see; change state in apply, in a step that ends an "
                                "epoch (step.ends_epoch())",
                                changed));
  }
  core::Progress& progress = session_.progress;
  if (progress.train_call >= call_) return;  // it came with the state
  progress.train_call = call_;
  progress.epoch = 0;
  progress.cursor = 0;
  progress.seed = options_.seed;
  if (progress.base_batch == 0) progress.base_batch = options_.base_batch;
}

void Steps::fail(elasticrun_status status, const std::string& why) {
  stop_buckets();
  session_.fail(status, why);
}

// Before the group is let go of: buckets may be under way in it.
void Steps::stop_buckets() {
  if (collective::Group* const group = session_.group(); group && reduction_.active())
    group->abort();
  reduction_.cancel();
}

// Does a part of a step. False: the step does not happen.
bool Steps::survives(const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const collective::GroupBroken& error) {
    stop_buckets();
    session_.broken(error);
  }
  discard();
  return false;
}

// ---------------------------------------------------------------- what comes next

Steps::Next Steps::next() {
  if (passed_) return Next::over;
  if (state_ == State::computes && survives([this] {
        end_piece();
        begin_piece();
      }))
    return Next::piece;
  if (state_ == State::at_epoch_end) leave_epoch_end();
  const bool committed = std::exchange(committed_, false);
  // What a program does after each step is part of what a step takes; the end of an epoch is not.
  const bool counts = committed && stays_ && !is_end() && !part_.last_of_epoch;
  between_ = counts ? control::now() - committed_at_ : Duration::zero();
  if (committed && session_.save_if_agreed()) stays_ = false;
  // Before a switch, if there is one. After an abort the next world tells it, and after a stop the
  // next job.
  if (std::exchange(stays_, false) && epoch_ends()) return tell_epoch_end();
  while (session_.await()) {
    if (session_.progress.train_call > call_) break;  // the world has already finished this call
    if (epoch_ends()) return tell_epoch_end();
    if (session_.progress.epoch >= options_.epochs)
      session_.done(call_);
    else if (begin_step())
      return Next::piece;
  }
  ended_with_.emplace(session_.table());
  return Next::over;
}

// ---------------------------------------------------------------- one step

// False: there is no world to step in at present.
bool Steps::begin_step() {
  if (!session_.begin_compute()) return false;
  const BatchPlan& plan = session_.world().plan;
  if (plan.global_batch <= 0)
    session_.fail(ELASTICRUN_MISUSE,
                  "train: no batch; give .batch or run under elasticrun --max-batch");
  if (!has_samples()) return false;
  begun_ = control::now();
  cost_ = {};
  const core::Progress& progress = session_.progress;
  part_ = part_of(progress);
  const core::Permutation& permutation = order(progress.epoch);
  if (plan.keeper == session_.rank() && explained_ != session_.generation()) explain_step();
  step_ = &new_step();
  samples_.resize(static_cast<std::size_t>(part_.own.count()));
  for (std::size_t i = 0; i < samples_.size(); ++i)
    samples_[i] = permutation[static_cast<std::uint64_t>(part_.own.first) + i];
  step_->epoch = progress.epoch;
  step_->global_batch = part_.range.count();
  step_->ends_epoch = part_.last_of_epoch;
  noise_ = progress.noise;
  step_->lr_factor = plan.adascale ? gain() : plan.lr_factor;
  reduction_.begin_step({.calls = part_.pieces.size(),
                         .global_samples = static_cast<double>(part_.range.count()),
                         .measured = plan.noise_base > 0,
                         .leads = part_.own.count() > 0 && part_.own.first == part_.range.first});
  session_.meter().enter(control::StepMeter::Phase::compute, begun_);
  watch_.begin(session_.generation(), begun_);
  step_->in_compute = true;
  state_ = State::computes;
  piece_ = 0;
  return survives([this] {
    // Later, in the middle of the step, buckets may be under way in the group.
    if (reduction_.has_buckets()) check_agreement(*session_.group());
    begin_piece();
  });
}

elasticrun_step& Steps::next_place() { return ring_[turn_++ % ring_.size()]; }

// What is the same for all steps.
elasticrun_step& Steps::new_step() {
  elasticrun_step& step = next_place();
  step.samples = {};
  step.in_compute = false;
  step.number = session_.progress.step;
  step.global_batch = 0;
  step.ends_epoch = false;
  step.epochs_done = 0;
  step.lr_factor = 1;
  step.sums.begin(session_.progress.sum_names);
  return step;
}

void Steps::begin_piece() {
  if (piece_ > 0) {
    StepFacts& before = *std::exchange(step_, &next_place());
    static_cast<StepFacts&>(*step_) = before;
    before.in_compute = false;
  }
  step_->samples = {};
  step_->last_piece = is_last_piece();
  if (!part_.pieces.empty()) {
    std::size_t first = 0;
    for (std::size_t i = 0; i < piece_; ++i) first += static_cast<std::size_t>(part_.pieces[i]);
    step_->samples =
        std::span(samples_).subspan(first, static_cast<std::size_t>(part_.pieces[piece_]));
    session_.table().restore_buffers();
  }
  if (is_last_piece())
    reduction_.begin_last_piece(*session_.group(), step_,
                                static_cast<double>(step_->samples.size()));
  else
    reduction_.begin_piece(step_);
  piece_begun_ = control::now();
}

void Steps::end_piece() {
  cost_.compute += control::now() - piece_begun_;
  if (!part_.pieces.empty()) reduction_.accumulate(static_cast<double>(part_.pieces[piece_]));
  ++piece_;
}

void Steps::end_compute() {
  end_piece();
  step_->in_compute = false;
  step_->samples = samples_;
  // Work enqueued on a GPU counts as computing: shares and sizes are derived from these times.
  const Time begin = control::now();
  session_.await_gpu();
  cost_.compute += control::now() - begin;
  check_state();
}

bool Steps::reduce() {
  if (at_end_step() && !begin_end()) {
    discard();
    return false;
  }
  core::Votes votes;
  const auto reduce = [&] {
    if (!is_end()) end_compute();
    votes = reduce_all();
  };
  if (!survives(reduce)) return false;
  if (!session_.may_apply(votes)) {
    discard();
    return false;
  }
  if (!is_end()) weigh_noise();
  session_.meter().enter(control::StepMeter::Phase::apply, control::now());
  state_ = State::applies;
  return true;
}

void Steps::discard() {
  state_ = State::between;
  reduction_.discard();
  session_.table().restore_buffers();
  session_.meter().enter(control::StepMeter::Phase::idle, control::now());
}

// Returns the world's votes. There is none for a switch on the last step of an epoch, so that the
// members that have ended the epoch are those that call on_epoch; except when an epoch is one step,
// for then there would never be a switch. Where the end is a step, that one may switch.
core::Votes Steps::reduce_all() {
  const bool end_follows = options_.epoch_steps != 0;
  const bool may_switch = !part_.last_of_epoch || (part_.first_of_epoch && !end_follows);
  const Time begin = control::now();
  session_.meter().enter(control::StepMeter::Phase::reduce, begin);
  collective::Group& group = *session_.group();
  check_agreement(group);
  if (is_end()) agree_on_call(group, "reduce, which ends the epoch");
  std::array<double, extras> numbers{};
  core::Votes::Row votes =
      session_.member_lock()
          .update([may_switch](core::Member& member) { return member.votes(may_switch); })
          .row();
  std::ranges::copy(votes, numbers.begin() + votes_at);
  numbers[new_names_at] =
      static_cast<double>(step_->sums.names().size() - session_.progress.sum_names.size());
  Divergence::Row state = divergence_.look();
  std::ranges::copy(state, numbers.begin() + state_at);
  auto& figures = step_->sums.values();
  std::copy(figures.begin(), figures.end(), numbers.begin() + figures_at);
  if (is_end())
    group.all_reduce(numbers.data(), collective::DataType::float64, numbers.size());
  else
    reduction_.reduce(group, numbers);
  std::copy_n(numbers.begin() + state_at, state.size(), state.begin());
  divergence_.check(group, state);
  std::copy_n(numbers.begin() + figures_at, figures.size(), figures.begin());
  // All members see the same sum, so all or none of them call this. All have begun with the same
  // names, so without a new name the names are still the same.
  if (numbers[new_names_at] != 0) agree_on_names(group);
  cost_.reduce += control::now() - begin;
  std::copy_n(numbers.begin() + votes_at, votes.size(), votes.begin());
  return core::Votes::of(votes);
}

// The worth of this step in steps of the base batch, by the present estimate of the noise.
double Steps::gain() const {
  return noise_.gain(static_cast<double>(part_.range.count()) /
                     static_cast<double>(session_.world().plan.noise_base));
}

// Updates the noise from numbers that are the same on all ranks, so that all apply the same factor.
void Steps::weigh_noise() {
  const BatchPlan& plan = session_.world().plan;
  if (plan.noise_base == 0) return;
  noise_.observe(reduction_.squares(), static_cast<double>(plan.noise_base));
  if (plan.adascale) step_->lr_factor = gain();
}

void Steps::keep_noise(core::Progress& next) {
  const auto base = static_cast<double>(session_.world().plan.noise_base);
  if (base == 0) return;
  next.noise = noise_;
  next.scale_invariant_steps += gain();
  if (session_.rank() == 0)
    cost_.noise = Noise{.square = noise_.square(),
                        .variance = base * noise_.variance(),
                        .steps = noise_.steps,
                        .biased = noise_.biased,
                        .scale_invariant_steps = next.scale_invariant_steps};
}

void Steps::commit() {
  try {
    if (is_end())
      session_.table().restore_buffers();
    else
      session_.table().commit_buffers();
    session_.await_gpu();
  } catch (const collective::GroupBroken& error) {  // the GPU failed: the step is half committed
    session_.fail(ELASTICRUN_FAILED, error.what());
  }
  core::Progress next = is_end() ? session_.progress.after_end()
                                 : session_.progress.next(part_.range.count(), options_.samples,
                                                          options_.epoch_steps != 0);
  if (next.sum_names.size() != step_->sums.names().size()) next.sum_names = step_->sums.names();
  if (next.base_batch == 0) next.base_batch = part_.range.count();
  if (!is_end()) keep_noise(next);
  session_.progress = std::move(next);
  const auto after =
      session_.member_lock().update([](core::Member& member) { return member.commit(); });
  const Time end = control::now();
  cost_.samples = part_.own.count();
  cost_.wall = between_ + (end - begun_);
  committed_at_ = end;
  session_.note_end(end);
  if (!is_end()) session_.meter().committed(cost_, end);
  state_ = State::between;
  committed_ = true;
  stays_ = after != core::Member::After::aborted;
}

}  // namespace elasticrun::worker::training
