// See gradient_noise.hpp.
#include "worker/training/gradient_noise.hpp"

namespace elasticrun::worker::training {
namespace {

// Tensors keep their own alignment where they lie one after the other.
std::size_t bytes_of(const gpu::Arithmetic::Factors& row) {
  return (row.count * size_of(row.type) + 15) / 16 * 16;
}

}  // namespace

void GradientNoise::measure(int ranks, double local, double pieces, double samples) {
  const double total = square();
  squares_ = {
      .local = pieces > 1 ? local : total, .total = total, .pieces = pieces, .samples = samples};
  // With several ranks the previous gradients are not the same on all ranks: a newcomer has none.
  if (ranks == 1 && pieces == 1)
    combine_with_previous();
  else
    discard();
}

void GradientNoise::combine_with_previous() {
  const double square = squares_.total, n = squares_.samples;
  if (!previous_) {
    std::size_t bytes = 0;
    for (const gpu::Arithmetic::Factors& gradient : gradients_) bytes += bytes_of(gradient);
    previous_ = arithmetic_.allocate(bytes);
  }
  Squares pairs = gradients_;
  std::size_t before = 0;
  for (gpu::Arithmetic::Factors& pair : pairs) {
    pair.a = previous_.get() + before;
    before += bytes_of(pair);
  }
  const bool paired = previous_samples_ > 0;
  const double cross = paired ? arithmetic_.dot(pairs) : 0;
  before = 0;
  for (const gpu::Arithmetic::Factors& gradient : gradients_) {
    arithmetic_.copy(previous_.get() + before, gradient.a, gradient.count * size_of(gradient.type));
    before += bytes_of(gradient);
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
