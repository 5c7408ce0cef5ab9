// See step_calls.hpp.
#include "worker/training/step_calls.hpp"

#include <fmt/format.h>

#include "base/rng.hpp"

namespace elasticrun::worker::training {

void StepCalls::clear() {
  first_.clear();
  number_ = 0;
  hash_ = 0;
}

void StepCalls::all_reduce(collective::DataType type, std::size_t count) {
  add({.what = "all_reduce", .size = count, .unit = collective::name_of(type)});
}

void StepCalls::broadcast(std::size_t bytes, int root) {
  add({.what = "broadcast", .size = bytes, .unit = "bytes", .root = root});
}

void StepCalls::barrier() { add({.what = "barrier"}); }

void StepCalls::add(const Call& call) {
  const auto take = [this](std::uint64_t x) { hash_ = mix(hash_ * 31 + x + 1); };
  for (const std::string_view text : {call.what, call.unit})
    for (const char c : text) take(static_cast<unsigned char>(c));
  take(call.size);
  take(static_cast<std::uint64_t>(call.root));
  if (++number_ <= most_kept) first_.push_back(call);
}

std::string StepCalls::words() const {
  if (none()) return "none";
  std::string words;
  for (const Call& call : first_) {
    words += fmt::format("{}{}", words.empty() ? "" : ", ", call.what);
    if (!call.unit.empty()) words += fmt::format(" of {} {}", call.size, call.unit);
    if (call.root >= 0) words += fmt::format(" from rank {}", call.root);
  }
  return number_ == first_.size() ? words
                                  : fmt::format("{} and {} more", words, number_ - first_.size());
}

}  // namespace elasticrun::worker::training
