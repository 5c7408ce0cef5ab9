// See step_calls.hpp.
#include "worker/training/step_calls.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace elasticrun::worker::training {

std::string all_reduce_call(collective::DataType type, std::size_t count) {
  return fmt::format("all_reduce of {} {}", count, name_of(type));
}

std::string broadcast_call(std::size_t bytes, int root) {
  return fmt::format("broadcast of {} bytes from rank {}", bytes, root);
}

void StepCalls::add(std::string call) {
  hash_.add(call);
  if (++number_ <= most_kept) first_.push_back(std::move(call));
}

std::string StepCalls::words() const {
  if (none()) return "none";
  const std::size_t more = number_ - first_.size();
  return fmt::format("{}{}", fmt::join(first_, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace elasticrun::worker::training
