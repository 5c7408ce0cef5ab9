// See buckets.hpp.
#include "worker/core/buckets.hpp"

#include <algorithm>
#include <utility>

namespace elasticrun::worker::core {
namespace {

constexpr std::size_t first_bytes = 1u << 20;

void add(Bucket& bucket, std::span<const Gradient> gradients, std::size_t number) {
  bucket.gradients.push_back(number);
  bucket.count += gradients[number].count;
}

// Splits the last bucket, so that the end of it has at most so many bytes, or one gradient.
void end_with_small(std::vector<Bucket>& buckets, std::span<const Gradient> gradients,
                    std::size_t bytes) {
  const Bucket whole = buckets.back();
  std::size_t begin = whole.gradients.size(), taken = 0;
  while (begin > 0 &&
         (taken == 0 || taken + gradients[whole.gradients[begin - 1]].bytes() <= bytes))
    taken += gradients[whole.gradients[--begin]].bytes();
  if (begin == 0) return;
  buckets.back() = {.gradients = {}, .type = whole.type, .count = 0};
  for (std::size_t i = 0; i < whole.gradients.size(); ++i) {
    if (i == begin) buckets.push_back({.gradients = {}, .type = whole.type, .count = 0});
    add(buckets.back(), gradients, whole.gradients[i]);
  }
}

}  // namespace

std::vector<Bucket> cut_into_buckets(std::span<const Gradient> gradients, std::size_t bytes) {
  std::vector<Bucket> buckets;
  for (std::size_t i = gradients.size(); i-- > 0;) {
    const Gradient& gradient = gradients[i];
    if (gradient.count == 0) continue;
    const std::size_t most = buckets.size() <= 1 ? std::min(bytes / 4, first_bytes) : bytes;
    const bool fits = !buckets.empty() && buckets.back().type == gradient.type &&
                      buckets.back().count * size_of(gradient.type) + gradient.bytes() <= most;
    if (!fits) buckets.push_back({.gradients = {}, .type = gradient.type, .count = 0});
    add(buckets.back(), gradients, i);
  }
  if (!buckets.empty()) end_with_small(buckets, gradients, bytes / 4);
  return buckets;
}

ReadyMarks::ReadyMarks(std::span<const Bucket> buckets, std::size_t gradients)
    : bucket_of_(gradients, buckets.size()), marked_(gradients) {
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    sizes_.push_back(buckets[i].gradients.size());
    for (const std::size_t gradient : buckets[i].gradients) bucket_of_[gradient] = i;
  }
  missing_ = sizes_;
}

void ReadyMarks::begin(const void* step) {
  step_ = step;
  missing_ = sizes_;
  std::ranges::fill(marked_, 0);
  next_ = 0;
}

bool ReadyMarks::mark(const void* step, std::size_t gradient) {
  if (step != step_ || std::exchange(marked_[gradient], 1) != 0) return false;
  if (bucket_of_[gradient] < missing_.size()) --missing_[bucket_of_[gradient]];
  return true;
}

void ReadyMarks::mark_all() {
  std::ranges::fill(missing_, 0);
  std::ranges::fill(marked_, 1);
}

std::optional<std::size_t> ReadyMarks::start() {
  if (!under_way() || all_started() || missing_[next_] > 0) return std::nullopt;
  return next_++;
}

}  // namespace elasticrun::worker::core
