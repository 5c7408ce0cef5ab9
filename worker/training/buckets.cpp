// See buckets.hpp.
#include "worker/training/buckets.hpp"

#include <algorithm>
#include <utility>

namespace elasticrun::worker::training {
namespace {

constexpr std::size_t first_bytes = 1u << 20;

}  // namespace

std::vector<Bucket> cut_into_buckets(std::span<const state::Tensor> gradients, std::size_t bytes) {
  std::vector<Bucket> buckets;
  for (std::size_t i = gradients.size(); i-- > 0;) {
    const state::Tensor& gradient = gradients[i];
    if (gradient.count == 0) continue;
    const std::size_t most = buckets.size() <= 1 ? std::min(bytes, first_bytes) : bytes;
    const bool fits = !buckets.empty() && buckets.back().type == gradient.type &&
                      buckets.back().count * size_of(gradient.type) + gradient.bytes() <= most;
    if (!fits) buckets.push_back({.gradients = {}, .type = gradient.type, .count = 0});
    buckets.back().gradients.push_back(i);
    buckets.back().count += gradient.count;
  }
  return buckets;
}

ReadyMarks::ReadyMarks(std::span<const Bucket> buckets, std::size_t gradients)
    : bucket_of_(gradients, buckets.size()), marked_(gradients) {
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    sizes_.push_back(buckets[i].gradients.size());
    for (const std::size_t gradient : buckets[i].gradients) bucket_of_[gradient] = i;
  }
  begin();
}

void ReadyMarks::begin() {
  missing_ = sizes_;
  std::ranges::fill(marked_, 0);
  next_ = 0;
}

bool ReadyMarks::mark(std::size_t gradient) {
  if (std::exchange(marked_[gradient], 1) != 0) return false;
  if (bucket_of_[gradient] < missing_.size()) --missing_[bucket_of_[gradient]];
  return true;
}

std::optional<std::size_t> ReadyMarks::start() {
  if (!may_start()) return std::nullopt;
  return next_++;
}

}  // namespace elasticrun::worker::training
