// The rules of how gradients are reduced in buckets (invariants.hpp).
#include <fmt/format.h>

#include <algorithm>

#include "simulate/faults/invariants.hpp"

namespace elasticrun::simulate::faults {

void Invariants::bucket_started(WorkerId worker, Generation generation, std::int64_t step,
                                const BucketThread::Start& start) {
  const std::vector<std::size_t>& gradients = start.bucket.gradients;
  const auto where = [&] {
    return fmt::format("worker {} starts gradients {} in step {} of world {}", worker.value,
                       fmt::join(gradients, ","), step, generation.value);
  };
  if (start.late) throw Violation("a late gradient changes nothing", where());
  if (!start.whole) throw Violation("a bucket is whole when it starts", where());
  const auto answered = answered_.find(worker);
  if (answered != answered_.end() && generation <= answered->second)
    throw Violation("an aborted step starts no bucket",
                    where() + fmt::format(" after answering for {}", answered->second.value));
  Reduced& reduced = reduced_[{generation, step}];
  auto& order = reduced.order;
  const std::size_t place = reduced.started[worker]++;
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(place);
  if (std::find(order.begin(), end, gradients) != end)
    throw Violation("a bucket starts once", where());
  if (place == order.size()) order.push_back(gradients);
  if (order[place] != gradients)
    throw Violation("members start the same buckets",
                    where() + fmt::format(", another {}", fmt::join(order[place], ",")));
}

void Invariants::bucket_ended(WorkerId worker, Generation generation, std::int64_t step) {
  ++reduced_[{generation, step}].ended[worker];
}

void Invariants::whole_step(WorkerId worker, Generation generation, std::int64_t step,
                            std::size_t buckets) {
  if (buckets == 0) return;
  Reduced& reduced = reduced_[{generation, step}];
  for (const WorkerId other : worlds_.at(generation))
    if (const std::size_t ended = reduced.ended[other]; ended != buckets)
      throw Violation(
          "a step is committed whole",
          fmt::format("worker {} commits step {} of world {}; on worker {} {} of {} "
                      "buckets have ended",
                      worker.value, step, generation.value, other.value, ended, buckets));
  reduced_.erase({generation, step - 2});  // all have committed it
}

}  // namespace elasticrun::simulate::faults
