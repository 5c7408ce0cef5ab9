// The steps of a simulated program, and what stands between two of them (process.hpp).
#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "simulate/faults/process.hpp"
#include "worker/core/shares.hpp"

namespace elasticrun::simulate::faults {

void Process::step() {
  worker::core::Progress& progress = model_.progress;
  if (progress.train_call > call_)
    return end_call();  // this is a newcomer: the world has finished this call already
  if (progress.train_call < call_) {
    progress.train_call = call_;
    progress.epoch = progress.cursor = 0;
    epochs_ended_ = 0;
  }
  if (epochs_ended_ < progress.epoch) return end_epoch();
  if (progress.epoch >= stage_.scene.epochs) {
    member_.done(call_);
    phase("idle");
    return do_outbox();
  }
  if (!member_.begin_compute(stage_.queue.now())) return phase("idle");
  busy_ = true;
  phase("compute");
  if (caught(Point::compute)) return;
  const wire::World& world = member_.world();
  const Generation g = step_world_ = world.generation;
  const auto range =
      worker::core::step_range(progress, world.plan.global_batch, stage_.scene.samples);
  const auto shares = worker::core::split(range.count(), static_cast<int>(world.members.size()),
                                          world.plan.weights);
  share_ = shares[static_cast<std::size_t>(member_.rank().value)];
  // The scene's time is for an equal share, or for one sample where some workers have none.
  const Duration time = (stage_.scene.compute / 2 + stage_.between_us(0, 4000)) * slowness_ *
                        share_ * std::ssize(shares) / std::max(range.count(), std::ssize(shares));
  computed_ += time;
  compute_gradients(time);
  later(time, [this, g] { reduce(g); });
}

bool Process::ends_epoch() const {
  const auto& batch = member_.world().plan.global_batch;
  return worker::core::step_range(model_.progress, batch, stage_.scene.samples).last ==
         stage_.scene.samples;
}

// The program's on_epoch, which evaluates, and on rank 0 writes the model.
void Process::end_epoch() {
  busy_ = true;
  phase("epoch");
  // on_epoch may take any time.
  if (caught(Point::epoch))
    return later(std::chrono::seconds(2), [this] {
      hangs_ = false;
      discard();
    });
  const auto most = std::chrono::duration_cast<std::chrono::microseconds>(stage_.scene.epoch_end);
  later(stage_.between_us(0, static_cast<int>(most.count())),
        [this, g = member_.world().generation, rank = member_.rank()] {
          ++epochs_ended_;
          if (rank == Rank(0)) stage_.invariants.epoch_ended(g, model_.progress.step);
          discard();
        });
}

// Most gradients become ready during compute, some later, and some are never reported.
void Process::compute_gradients(Duration time) {
  const void* const step = bucket_thread_.begin();
  const auto most = static_cast<std::uint64_t>(time.count() + 1);
  std::vector<Duration> times(bucket_thread_.gradients());
  for (Duration& one : times) one = Duration(static_cast<std::int64_t>(stage_.rng.below(most)));
  // A backward pass ends with the first gradient, others go any way.
  if (!times.empty() && stage_.rng.chance(0.5)) std::ranges::sort(times, std::greater());
  for (std::size_t gradient = 0; gradient < times.size(); ++gradient) {
    if (stage_.rng.chance(0.1)) continue;
    // That is the time of some steps, but not of eight (BucketThread::begin).
    if (stage_.rng.chance(0.1)) times[gradient] = time + stage_.between_us(1, 10'000);
    later(times[gradient], [this, step, gradient] { bucket_thread_.ready(step, gradient); });
  }
}

void Process::reduce_bucket(const BucketThread::Start& start) {
  const Generation g = step_world_;
  const std::int64_t step = model_.progress.step + 1;
  if (stage_.plane.has_group(id_, g)) stage_.invariants.bucket_started(id_, g, step, start);
  stage_.plane.reduce(g, id_, index_++, {}, nullptr,
                      [this, g, step, self = shared_from_this()](const Plane::Ended& ended) {
                        now_or_thawed([this, g, step, ended] {
                          if (ended.sum) stage_.invariants.bucket_ended(id_, g, step);
                          bucket_thread_.ended(ended);
                        });
                      });
}

// As in a real step the vote is read when compute ends; buckets may still be under way.
void Process::reduce(Generation g) {
  phase("reduce");
  if (caught(Point::reduce)) return;
  // The world that ends an epoch must also call on_epoch: no vote to switch worlds at this step.
  const Plane::Votes votes = member_.running(g) ? member_.votes(!ends_epoch()) : Plane::Votes();
  bucket_thread_.finish([this, g, votes](const Plane::Ended& ended) {
    if (ended.sum && member_.running(g)) return reduce_votes(g, votes);
    reduced(g, {{}, ended.troubles});
  });
}

void Process::reduce_votes(Generation g, const Plane::Votes& votes) {
  const auto complete = [this, g] { stage_.invariants.reduction_complete(g); };
  stage_.plane.reduce(g, id_, index_++, votes, complete,
                      [this, g, self = shared_from_this()](const Plane::Ended& ended) {
                        now_or_thawed([this, g, ended] { reduced(g, ended); });
                      });
}

void Process::reduced(Generation generation, const Plane::Ended& ended) {
  if (!ended.sum) return broken("the reduction broke", ended.troubles);
  if (!member_.may_apply(*ended.sum, stage_.queue.now())) return discard();
  stage_.invariants.applies(generation);
  phase("apply");
  if (caught(Point::apply)) return;
  later(stage_.between_us(10, 3000), [this, generation] { applied(generation); });
}

void Process::applied(Generation generation) {
  const worker::core::Progress before = model_.progress;
  const auto range =
      worker::core::step_range(before, member_.world().plan.global_batch, stage_.scene.samples);
  model_.digest = updated(model_.digest, before, range);
  model_.progress = before.next(range.count(), stage_.scene.samples);
  stage_.invariants.whole_step(id_, generation, before.step + 1, bucket_thread_.buckets());
  stage_.invariants.committed(id_, generation, before, range, model_.digest);
  stage_.stepping.committed(stage_.queue.now());
  ++steps_;
  samples_ += share_;
  member_.commit();
  if (const auto order = member_.take_save()) return save(*order);
  discard();
}

// Writes this worker's part: before anything else if the others wait, otherwise beside the next
// steps.
void Process::save(const worker::core::SaveOrder& order) {
  stage_.invariants.saved(order.save.number, order.generation, model_);
  if (order.save.stop) stage_.stepping.stops();
  stage_.drafts[order.save.folder] = model_;
  wire::Saved report{.number = order.save.number,
                     .generation = order.generation,
                     .step = StepId(model_.progress.step),
                     .rank = order.rank.value,
                     .size = order.size,
                     .call = model_.progress.train_call};
  if (stage_.rng.chance(0.03)) report.error = "the disk is full";
  const auto written = [this, report, waits = order.waits] {
    member_.saved(report);
    if (waits) return discard();
    do_outbox();
  };
  do_outbox();
  busy_ = true;
  phase("save");
  later(stage_.between_us(100, 100'000), written);
  if (!order.waits) discard();
}

}  // namespace elasticrun::simulate::faults
