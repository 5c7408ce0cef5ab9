// See save_times.hpp.
#include "job/core/course/save_times.hpp"

#include <algorithm>

namespace elasticrun::job::course {
namespace {

// Before the time limit the job stops this much earlier than a save is thought to take.
constexpr Duration spare_time = std::chrono::seconds(30);
// What a save is thought to take before there was one.
constexpr Duration first_guess = std::chrono::seconds(60);
// What is left of the time limit for the workers to end in, unless that is very short.
constexpr Duration last_moments = std::chrono::seconds(10);
// A save is cheap when this many times what its members are busy with it have passed since the last
// one. Before there was one this is thought to be the first time, and that of the bytes.
constexpr int cheap_share = 50;
constexpr Duration first_writing = std::chrono::milliseconds(100);
constexpr double first_bytes_per_s = 200e6;

// Imports take their time.
constexpr Duration first_doubt = std::chrono::minutes(1);

}  // namespace

void SaveTimes::workers_began(Time now) {
  if (!saving_.folder.empty()) doubt_at_ = now + first_doubt;
}

void SaveTimes::world_formed(Time now) {
  doubt_at_ = never;
  if (save_began_ == Time{}) save_began_ = now;
  if (!saving_.folder.empty() && saving_.every > Duration::zero() && due_ == never && !stops_)
    due_ = now + saving_.every;
}

void SaveTimes::stepped(Time now) {
  if (stepped_) longest_pause_ = std::max(longest_pause_, now - *stepped_);
  stepped_ = now;
}

void SaveTimes::save_begins(Time now) {
  took_precaution_ |= now >= precaution_at();
  due_ = never;
  save_began_ = now;
}

void SaveTimes::save_ended(Duration writing, Duration taking, Time now) {
  longest_ = std::max(longest_, taking);
  longest_writing_ = std::max(longest_writing_, writing);
  if (saving_.every > Duration::zero() && !stops_)
    due_ = std::max(save_began_ + saving_.every, now);
}

void SaveTimes::save_failed(Time now) {
  if (saving_.every > Duration::zero() && !stops_) due_ = now + saving_.every;
}

void SaveTimes::stop() {
  stops_ = true;
  due_ = never;
}

Time SaveTimes::save_at() const { return std::min(due_, precaution_at()); }

// At least half of the time is for training.
Time SaveTimes::stop_at() const {
  if (!limited() || stops_) return never;
  return began_ + std::max(saving_.time_limit - margin(), saving_.time_limit / 2);
}

// Three times the longest save so far, for the next one may meet a file system that is busy with
// the saves of all other jobs that end at the same hour.
Duration SaveTimes::margin() const {
  const Duration guess = longest_ > Duration::zero() ? 3 * longest_ : first_guess;
  return std::min(spare_time + guess, timeout_);
}

// Where a step or on_epoch has taken long, one may be under way when the limit is near, and then
// nothing could be saved: so there is a save before the last one of these would begin.
Time SaveTimes::precaution_at() const {
  if (saving_.folder.empty() || took_precaution_ || longest_pause_ < spare_time) return never;
  const Time stop = stop_at();
  return stop == never ? never : stop - longest_pause_;
}

Time SaveTimes::save_ends_by(Time now) const { return now + timeout_; }

Time SaveTimes::stop_ends_by(Time now) const {
  if (!limited()) return save_ends_by(now);
  const Duration left_over = std::min(last_moments, saving_.time_limit / 20);
  return std::min(save_ends_by(now), began_ + saving_.time_limit - left_over);
}

bool SaveTimes::is_up(Time now) const { return limited() && now >= began_ + saving_.time_limit; }

Duration SaveTimes::writing(std::uint64_t bytes) const {
  if (longest_writing_ > Duration::zero()) return longest_writing_;
  const std::chrono::duration<double> first(static_cast<double>(bytes) / first_bytes_per_s);
  return first_writing + std::chrono::duration_cast<Duration>(first);
}

bool SaveTimes::is_cheap(std::uint64_t bytes, Time now) const {
  return now - save_began_ >= cheap_share * writing(bytes);
}

}  // namespace elasticrun::job::course
