// See saves.hpp.
#include "job/core/course/saves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "save/names.hpp"

namespace elasticrun::job::course {
namespace {

// Before the time limit the job stops this much earlier than a save is thought to take.
constexpr Duration spare_time = std::chrono::seconds(30);
// What a save is thought to take before there was one.
constexpr Duration first_guess = std::chrono::seconds(60);

}  // namespace

Saves::Saves(const JobSpec& spec)
    : saving_(spec.saving),
      timeout_(spec.deadlines.save_timeout),
      kept_(spec.saving.found),
      next_number_(spec.saving.next_number) {}

// ---------------------------------------------------------------- when

void Saves::job_began(Time now) { began_ = now; }

// At least half of the time is for training.
Time Saves::limit_at() const {
  if (saving_.time_limit == Duration::zero() || began_ == never || stopping()) return never;
  return began_ + std::max(saving_.time_limit - margin(), saving_.time_limit / 2);
}

void Saves::world_formed(Time now) {
  if (on() && saving_.every > Duration::zero() && due_ == never && !under_way())
    due_ = now + saving_.every;
}

// Three times the longest save so far, for the next one may meet a file system that is busy with
// the saves of all other jobs that end at the same hour.
Duration Saves::margin() const {
  const Duration guess = longest_ > Duration::zero() ? 3 * longest_ : first_guess;
  return std::min(spare_time + guess, timeout_);
}

void Saves::look_if_due(bool steps, Time now) {
  if (!steps || now < due_ || under_way()) return;
  due_ = never;
  turn(SaveTurn::due);
  deadline_ = now + timeout_;
  asked_at_ = now;
}

void Saves::user_wants_the_end(Time now) {
  const bool limited = saving_.time_limit > Duration::zero() && began_ != never;
  if (stop_ && !(limited && now >= began_ + saving_.time_limit)) stop_->time_is_up = false;
}

void Saves::stop(Stop stop, Time now) {
  stop_ = std::move(stop);
  due_ = never;
  deadline_ = now + timeout_;
  if (saving_.time_limit > Duration::zero() && began_ != never)
    deadline_ = std::min(deadline_, began_ + saving_.time_limit);
  asked_at_ = now;
  // The members that write a save already are asked for another one, which they stop with.
  turn(SaveTurn::due);
  turn(SaveTurn::world_ended);
}

// ---------------------------------------------------------------- one save

wire::Save Saves::ask() {
  turn(SaveTurn::asked);
  parts_.clear();
  number_ = next_number_++;
  last_ = stopping();
  return {.number = number_, .folder = save::draft_of(saving_.folder, number_), .stop = last_};
}

std::int64_t Saves::world_ended() {
  if (!is(SaveState::asked)) return 0;
  turn(SaveTurn::world_ended);
  return number_;
}

bool Saves::written(const wire::Saved& part) {
  if (!is(SaveState::asked) || part.number != number_) return false;
  if (!parts_.empty()) {
    const wire::Saved& other = parts_.begin()->second;
    if (part.generation != other.generation || part.step != other.step || part.size != other.size)
      return false;
  }
  parts_[part.rank] = part;
  if (static_cast<int>(parts_.size()) < part.size) return false;
  turn(SaveTurn::written);
  return true;
}

wire::saved::Manifest Saves::manifest(const std::vector<std::string>& argv) const {
  const wire::Saved& first = parts_.begin()->second;
  const wire::TrainSpec& train = kept_.train();
  wire::saved::Manifest manifest{.step = first.step.value,
                                 .call = first.call,
                                 .epoch = first.epoch,
                                 .cursor = first.cursor,
                                 .samples = train.call == first.call ? train.samples : 0,
                                 .state_bytes = train.state_bytes,
                                 .state_layout = train.state_layout,
                                 .argv = argv};
  for (const auto& [rank, part] : parts_)
    manifest.files.insert(manifest.files.end(), part.files.begin(), part.files.end());
  return manifest;
}

Saves::Report Saves::sealed(std::string path, wire::saved::Manifest manifest, Time now) {
  turn(SaveTurn::sealed);
  Report report{.manifest = manifest, .took = now - asked_at_, .last = last_};
  for (const wire::saved::File& file : manifest.files) report.bytes += file.bytes;
  for (const auto& [rank, part] : parts_)
    report.held = std::max(report.held, Duration(part.held_ns));
  longest_ = std::max(longest_, report.took);
  kept_.add({std::move(path), std::move(manifest)});
  if (stopping()) {
    turn(SaveTurn::due);  // unless it is that of the stop
    return report;
  }
  deadline_ = never;
  if (saving_.every > Duration::zero()) due_ = std::max(asked_at_ + saving_.every, now);
  return report;
}

void Saves::give_up(Time now) {
  turn(SaveTurn::given_up);
  deadline_ = never;
  if (saving_.every > Duration::zero() && !stopping()) due_ = now + saving_.every;
}

}  // namespace elasticrun::job::course
