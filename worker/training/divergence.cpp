// See divergence.hpp.
#include "worker/training/divergence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "worker/state/machine_kind.hpp"

namespace elasticrun::worker::training {
namespace {

// A hash travels as two doubles, which hold its two halves exactly.
constexpr int half_bits = 32;
constexpr std::uint64_t half_mask = 0xffffffff;

std::vector<std::uint64_t> gather(collective::Group& group, std::uint64_t mine) {
  const auto size = static_cast<std::size_t>(group.size());
  const auto rank = static_cast<std::size_t>(group.rank());
  std::vector<double> halves(2 * size);
  halves[2 * rank] = static_cast<double>(mine >> half_bits);
  halves[2 * rank + 1] = static_cast<double>(mine & half_mask);
  group.all_reduce(halves.data(), collective::DataType::float64, halves.size());
  std::vector<std::uint64_t> all;
  for (std::size_t i = 0; i < size; ++i)
    all.push_back(static_cast<std::uint64_t>(halves[2 * i]) << half_bits |
                  static_cast<std::uint64_t>(halves[2 * i + 1]));
  return all;
}

}  // namespace

Divergence::Divergence(control::WorldSession& session)
    : session_(session), comparison_(session.table(), session.compare_steps()) {}

Divergence::Row Divergence::look() {
  hash_.reset();
  const bool compares =
      comparison_.on() && session_.size() > 1 && !comparison_.stopped(session_.generation());
  if (!compares) return {};
  hash_ = comparison_.look(session_.progress.step);
  return core::SmallAgreement(*hash_).mine();
}

void Divergence::check(collective::Group& group, const Row& sums) {
  if (hash_ && !core::SmallAgreement(*hash_).holds(sums, session_.size())) tell(group);
}

void Divergence::tell(collective::Group& group) {
  const auto hashes = gather(group, *hash_);
  const auto kinds = gather(group, state::kind_of_machine(session_.table().gpu()));
  const bool mixed = std::ranges::adjacent_find(kinds, std::not_equal_to<>()) != kinds.end();
  const auto odd = state::odd_ranks(hashes);
  const std::string where = comparison_.where();
  session_.member_lock().update([&](core::Member& member) {
    member.diverged(odd.value_or(std::vector<int>()), where, mixed);
  });
  if (mixed) return comparison_.stop(session_.generation());
  // All ranks wait here: the first rank to break would have the others aborted before an odd member
  // has forgotten its state.
  group.barrier();
  throw collective::GroupBroken(fmt::format("the members' states differ somewhere in {}", where));
}

}  // namespace elasticrun::worker::training
