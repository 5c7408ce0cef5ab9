#include "tests/bench/control_plane/account.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "tests/bench/control_plane/memory.hpp"

namespace elasticrun::bench {
namespace {

Duration read(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

Duration wall_time() { return read(CLOCK_MONOTONIC); }
Duration processor_time() { return read(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace

Account::Account(const simulate::Queue& clock, Duration limit) : clock_(clock), limit_(limit) {
  constexpr int looks = 1000;
  const Duration begin = wall_time();
  for (int i = 0; i < looks; ++i) (void)wall_time();
  look_ = (wall_time() - begin) / (looks + 1);
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
  const Duration now = wall_time();
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
  wall_began_ = wall_time();
  processor_began_ = processor_time();
}

Cost Account::end_phase() const {
  Cost cost = cost_;
  cost.most_bytes = most_counted_bytes();
  const double share = seconds(processor_time() - processor_began_) /
                       std::max(seconds(wall_time() - wall_began_), 1e-9);
  for (Duration* part : {&cost.decode, &cost.core, &cost.encode})
    *part = std::chrono::duration_cast<Duration>(*part * share);
  return cost;
}

}  // namespace elasticrun::bench
