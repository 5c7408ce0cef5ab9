// See gradient_reduction.hpp.
#include "worker/training/gradient_reduction.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace elasticrun::worker::training {

namespace {

// Number of our own extras after the caller's: GradientSquares::local and ::pieces.
constexpr std::size_t own_extras = 2;

}  // namespace

Reduction::Reduction(const state::StateTable& table, std::size_t extras_max)
    : arithmetic_(table.arithmetic()), type_(table.type()), extras_max_(extras_max) {
  const auto place = [&](const state::Tensor& tensor) {
    if (tensor.count == 0) return;
    const bool large = tensor.count * size_of(type_) >= arithmetic_.large_bytes();
    std::size_t& total = large ? large_count_ : small_count_;
    (large ? large_places_ : small_places_).push_back({tensor.data, tensor.count, total});
    if (large) rows_.push_back({tensor.data, tensor.count});
    total += tensor.count;
  };
  for (const state::Tensor& tensor : table.gradients()) place(tensor);
  for (const state::Tensor& tensor : table.buffers()) place(tensor);
  for (const state::Tensor& tensor : table.gradients())
    if (tensor.count > 0) gradients_.push_back({tensor.data, tensor.data, tensor.count});
  fused_ = allocate(small_count_ + extras_max_ + own_extras);
  rows_.push_back({fused_.get(), 0});
}

gpu::Arithmetic::Memory Reduction::allocate(std::size_t count) {
  return arithmetic_.allocate(count * size_of(type_));
}

void Reduction::begin_step(std::size_t compute_calls, double global_samples, bool measured) {
  ER_CHECK(global_samples > 0);
  measured_ = measured;
  local_ = 0;
  if (!measured) discard();
  calls_ = compute_calls;
  done_ = 0;
  global_samples_ = global_samples;
  if (calls_ > 1 && !large_) large_ = allocate(large_count_);
}

void Reduction::accumulate(double samples) {
  ER_CHECK(done_ < calls_, "more calls of compute than said");
  const double weight = samples / global_samples_;
  // The only piece of a step is also its mean, which is measured later.
  if (measured_ && weight < 1) local_ += weight * arithmetic_.dot(gradients_);
  for (const Place& place : small_places_) take(at(fused_, place.at), place, weight);
  for (const Place& place :
       large_places_)  // with one call nothing overwrites the tensor before it is reduced
    take(calls_ == 1 ? place.data : at(large_, place.at), place, weight);
  ++done_;
}

void Reduction::take(void* to, const Place& place, double weight) {
  if (done_ == 0)
    arithmetic_.scale(to, place.data, place.count, weight);
  else
    arithmetic_.add(to, place.data, place.count, weight);
}

void Reduction::reduce(collective::Group& group, std::span<double> extras) {
  ER_CHECK(done_ == calls_ && extras.size() <= extras_max_);
  for (const Place& place : large_places_) {
    const std::size_t bytes = place.count * size_of(type_);
    if (calls_ == 0) arithmetic_.clear(place.data, bytes);
    if (calls_ > 1) arithmetic_.copy(place.data, at(large_, place.at), bytes);
  }
  if (calls_ == 0) arithmetic_.clear(fused_.get(), small_count_ * size_of(type_));
  numbers_.assign(extras.begin(), extras.end());
  numbers_.insert(numbers_.end(), {local_, static_cast<double>(calls_)});
  arithmetic_.write(at(fused_, small_count_), numbers_);
  rows_.back().count = small_count_ + numbers_.size();
  group.all_reduce_each(rows_, type_);
  for (const Place& place : small_places_)
    arithmetic_.copy(place.data, at(fused_, place.at), place.count * size_of(type_));
  arithmetic_.read(at(fused_, small_count_), numbers_);
  std::copy_n(numbers_.begin(), extras.size(), extras.begin());
  const double local = numbers_[extras.size()], pieces = numbers_[extras.size() + 1];
  if (measured_) measure(group.size(), local, pieces);
}

// ---------------------------------------------------------------- noise

void Reduction::measure(int ranks, double local, double pieces) {
  const double total = arithmetic_.dot(gradients_);
  squares_ = {.local = pieces > 1 ? local : total,
              .total = total,
              .pieces = pieces,
              .samples = global_samples_};
  // With several ranks the previous gradients are not the same on all ranks: a newcomer has none.
  if (ranks == 1 && pieces == 1)
    measure_with_previous();
  else
    discard();
}

void Reduction::measure_with_previous() {
  const double square = squares_.total, n = squares_.samples;
  if (!previous_) {
    std::size_t elements = 0;
    for (const gpu::Arithmetic::Factors& gradient : gradients_) elements += gradient.count;
    previous_ = allocate(elements);
  }
  std::vector<gpu::Arithmetic::Factors> pairs = gradients_;
  std::size_t before = 0;
  for (gpu::Arithmetic::Factors& pair : pairs) {
    pair.a = at(previous_, before);
    before += pair.count;
  }
  const bool paired = previous_samples_ > 0;
  const double cross = paired ? arithmetic_.dot(pairs) : 0;
  before = 0;
  for (const gpu::Arithmetic::Factors& gradient : gradients_) {
    arithmetic_.copy(at(previous_, before), gradient.a, gradient.count * size_of(type_));
    before += gradient.count;
  }
  if (paired) {
    const double m = previous_samples_, all = m + n;
    squares_ = {
        .local = (m * previous_square_ + n * square) / all,
        .total = (m * m * previous_square_ + n * n * square + 2 * m * n * cross) / (all * all),
        .pieces = 2,
        .samples = all,
        .biased = true};
  }
  previous_square_ = square;
  previous_samples_ = n;
}

}  // namespace elasticrun::worker::training
