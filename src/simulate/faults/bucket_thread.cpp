// See bucket_thread.hpp.
#include "simulate/faults/bucket_thread.hpp"

#include <algorithm>
#include <utility>

#include "base/rng.hpp"

namespace elasticrun::simulate::faults {
namespace {

using worker::collective::DataType;

constexpr std::size_t bucket_bytes = 2u << 20;

// What the programs of this scene register: the same in each of them.
std::vector<worker::core::Gradient> gradients_of(const Scene& scene) {
  constexpr DataType types[] = {DataType::float32, DataType::float32, DataType::bfloat16};
  Rng rng(mix(scene.seed ^ 0x9ad5));
  std::vector<worker::core::Gradient> gradients;
  for (int i = 0; i < scene.gradients; ++i)
    gradients.push_back({types[rng.below(std::size(types))],
                         rng.chance(0.1) ? 0 : static_cast<std::size_t>(1 + rng.below(600'000))});
  return gradients;
}

}  // namespace

BucketThread::BucketThread(const Scene& scene, Reduce reduce)
    : BucketThread(gradients_of(scene), std::move(reduce)) {}

BucketThread::BucketThread(std::vector<worker::core::Gradient> gradients, Reduce reduce)
    : buckets_(worker::core::cut_into_buckets(gradients, bucket_bytes)),
      reduce_(std::move(reduce)),
      marks_(buckets_, gradients.size()),
      ready_(gradients.size()) {}

const void* BucketThread::begin() {
  step_ = &steps_[turn_++ % steps_.size()];
  std::ranges::fill(ready_, 0);
  marks_.begin(step_);
  return step_;
}

void BucketThread::ready(const void* step, std::size_t gradient) {
  const bool late = step != step_;
  if (!late) ready_[gradient] = 1;
  marks_.mark(step, gradient);
  go_on(late);
}

void BucketThread::finish(Plane::Done done) {
  std::ranges::fill(ready_, 1);
  done_ = std::move(done);
  marks_.mark_all();
  go_on();
}

void BucketThread::ended(const Plane::Ended& how) {
  reducing_ = false;
  if (!how.sum) broken_ = how;
  go_on();
}

// Starts a bucket if one may start, or ends the step if all is done.
void BucketThread::go_on(bool late) {
  if (reducing_) return;
  if (const auto next = broken_ ? std::nullopt : marks_.start()) {
    const worker::core::Bucket& bucket = buckets_[*next];
    const auto is_ready = [this](std::size_t gradient) { return ready_[gradient] != 0; };
    reducing_ = true;
    return reduce_({bucket, std::ranges::all_of(bucket.gradients, is_ready), late});
  }
  if (!done_ || !(broken_ || marks_.all_started())) return;
  marks_.end();
  step_ = nullptr;
  const Plane::Done done = std::exchange(done_, nullptr);
  done(std::exchange(broken_, std::nullopt).value_or(Plane::Ended{Plane::Votes(), {}}));
}

}  // namespace elasticrun::simulate::faults
