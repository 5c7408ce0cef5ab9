#include "tests/bench/control_plane/account.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "tests/bench/control_plane/memory.hpp"

namespace elasticrun::bench {
namespace {

Duration processor_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

Account::Account(const simulate::Queue& clock, Duration limit) : clock_(clock), limit_(limit) {
  constexpr int looks = 1000;
  const Duration begin = processor_time();
  for (int i = 0; i < looks; ++i) (void)processor_time();
  look_ = (processor_time() - begin) / (looks + 1);
}

void Account::charge(Duration time) {
  if (part_ == Part::decode) cost_.decode += time;
  if (part_ == Part::encode) cost_.encode += time;
  if (part_ == Part::core) {
    cost_.core += time;
    cost_.longest_call = std::max(cost_.longest_call, time);
  }
  turn_ += time;
}

void Account::now_in(Part part) {
  const Duration now = processor_time();
  if (part_ != Part::outside) charge(std::max(now - since_ - look_, Duration::zero()));
  part_ = part;
  since_ = now;
  count_memory(part != Part::outside);
  cost_.turns += part == Part::core;
  if (part == Part::outside) end_turn();
}

void Account::end_turn() {
  cost_.longest_turn = std::max(cost_.longest_turn, turn_);
  busy_until_ = std::max(busy_until_, clock_.now()) + turn_;
  cost_.longest_delay = std::max(cost_.longest_delay, busy_until_ - clock_.now());
  turn_ = {};
  if (cost_.all() > limit_)
    throw OverLimit(fmt::format("it takes more than {} of processor time", to_text(limit_)));
}

void Account::begin_phase() {
  cost_ = {};
  turn_ = {};
  busy_until_ = {};
  part_ = Part::outside;  // the last phase may have ended in the middle of a turn
  count_memory(false);
  reset_most_counted_bytes();
}

Cost Account::end_phase() const {
  Cost cost = cost_;
  cost.most_bytes = most_counted_bytes();
  return cost;
}

}  // namespace elasticrun::bench
