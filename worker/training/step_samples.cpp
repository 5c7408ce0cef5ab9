// Which samples a step has, and which of them are this worker's; see steps.hpp.
#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "worker/core/named_samples.hpp"
#include "worker/core/shares.hpp"
#include "worker/training/steps.hpp"

namespace elasticrun::worker::training {
namespace {

std::int64_t smaller_limit(std::int64_t a, std::int64_t b) {  // 0: no limit
  if (a == 0 || b == 0) return std::max(a, b);
  return std::min(a, b);
}

}  // namespace

Steps::Part Steps::part_of(const core::Progress& progress) const {
  const BatchPlan& plan = session_.world().plan;
  const core::Range range = core::step_range(progress, plan.global_batch, options_.samples);
  const auto shares = core::split(range.count(), session_.size(), plan.weights);
  const std::int64_t first = range.first + core::offset(shares, session_.rank());
  const std::int64_t share = shares[static_cast<std::size_t>(session_.rank())];
  return {range,
          {first, first + share},
          core::pieces(share, smaller_limit(options_.micro_batch, plan.micro_batch)),
          range.first == 0,
          range.last == options_.samples};
}

const core::Permutation& Steps::order(std::int64_t epoch) {
  const std::uint64_t seed = session_.progress.seed;
  const auto samples = static_cast<std::uint64_t>(options_.samples);
  if (!order_ || order_epoch_ != epoch || order_seed_ != seed || order_->size() != samples) {
    order_.emplace(seed, epoch, samples);
    order_epoch_ = epoch;
    order_seed_ = seed;
  }
  return *order_;
}

// Reports which rank computes which samples. This step may kill the workers that compute it, and
// then this worker is the one that can still report their samples.
void Steps::explain_step() {
  explained_ = session_.generation();
  const core::Progress& progress = session_.progress;
  const BatchPlan& plan = session_.world().plan;
  const core::Permutation& permutation = order(progress.epoch);
  const core::Range range = core::step_range(progress, plan.global_batch, options_.samples);
  const auto shares = core::split(range.count(), session_.size(), plan.weights);
  wire::StepSamples samples{.epoch = progress.epoch,
                            .by_rank = core::named_samples(range.first, shares, permutation)};
  session_.member_lock().update([&](core::Member& member) { member.explain(std::move(samples)); });
}

std::size_t Steps::upcoming(std::uint64_t* samples, std::size_t count) const {
  if (state_ == State::outside || !session_.group() || session_.world().plan.global_batch <= 0)
    return 0;
  core::Progress at = session_.progress;
  if (at_end()) return 0;
  if (in_step()) at = at.next(session_.world().plan.global_batch, options_.samples);
  std::size_t written = 0;
  // A share can be empty in the last step of an epoch, or always.
  for (std::size_t steps = 0; steps < 2 * count + 2; ++steps) {
    if (written == count || at.epoch >= options_.epochs) break;
    const Part part = part_of(at);
    const core::Permutation permutation(at.seed, at.epoch,
                                        static_cast<std::uint64_t>(options_.samples));
    for (std::int64_t i = part.own.first; i < part.own.last && written < count; ++i)
      samples[written++] = permutation[static_cast<std::uint64_t>(i)];
    at = at.next(session_.world().plan.global_batch, options_.samples);
  }
  return written;
}

std::optional<std::vector<std::uint64_t>> Steps::upcoming_piece(std::size_t ahead) const {
  if (state_ == State::outside || !session_.group() || session_.world().plan.global_batch <= 0 ||
      at_end())
    return std::nullopt;
  core::Progress at = session_.progress;
  std::size_t before = 0;  // pieces of the step at `at` that were given already
  if (computes())
    before = piece_ + 1;
  else if (applies())
    at = at.next(session_.world().plan.global_batch, options_.samples);
  for (; at.epoch == session_.progress.epoch;
       at = at.next(session_.world().plan.global_batch, options_.samples)) {
    const Part part = part_of(at);
    // An empty share comes as one piece.
    const std::size_t pieces =
        std::max<std::size_t>(part.pieces.size(), 1) - std::exchange(before, 0);
    if (ahead >= pieces) {
      ahead -= pieces;
      continue;
    }
    std::vector<std::uint64_t> samples;
    if (part.pieces.empty()) return samples;
    const auto piece = part.pieces.end() - static_cast<std::ptrdiff_t>(pieces - ahead);
    const std::int64_t first = std::accumulate(part.pieces.begin(), piece, part.own.first);
    const core::Permutation permutation(at.seed, at.epoch,
                                        static_cast<std::uint64_t>(options_.samples));
    for (std::int64_t i = first; i < first + *piece; ++i)
      samples.push_back(permutation[static_cast<std::uint64_t>(i)]);
    return samples;
  }
  return std::nullopt;
}

}  // namespace elasticrun::worker::training
