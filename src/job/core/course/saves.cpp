// See saves.hpp.
#include "job/core/course/saves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "save/names.hpp"

namespace elasticrun::job::course {
namespace {

// A save of a stop that fails is tried again, for the disk may be full of the one before it.
constexpr int most_attempts = 3;
constexpr Duration retry_pause = std::chrono::seconds(1);

}  // namespace

Saves::Saves(const JobSpec& spec)
    : folder_(spec.saving.folder),
      times_(spec),
      kept_(spec.saving.found),
      next_number_(spec.saving.next_number) {}

// ---------------------------------------------------------------- when

Time Saves::wake_at(bool steps) const {
  const Time due = steps && !under_way() ? times_.save_at() : never;
  const Time idle = idle_ && !under_way() ? idle_->save_at : never;
  return std::min({due, idle, deadline_, times_.stop_at(), times_.doubt_at()});
}

void Saves::begin(Time now) {
  times_.save_begins(now);
  turn(SaveTurn::due);
  deadline_ = times_.save_ends_by(now);
}

void Saves::look_if_due(bool steps, Time now) {
  if (on() && steps && !under_way() && now >= times_.save_at()) begin(now);
  if (idle_ && !under_way() && now >= idle_->save_at) {
    const StepId step = idle_->step;
    idle_.reset();
    secure(step, now);
  }
}

void Saves::steps_pause(StepId step, bool idle, Time now) {
  const std::uint64_t bytes = kept_.train().state_bytes;
  if (times_.is_cheap(bytes, now))
    secure(step, now);
  else if (on() && idle && !idle_)
    idle_ = Idle{step, now + times_.writing(bytes)};
}

void Saves::secure(StepId step, Time now) {
  if (!on() || under_way() || step <= StepId(0)) return;
  if (kept_.newest_step() < step) begin(now);
}

// ---------------------------------------------------------------- stopping

void Saves::stop(Stop stop, bool trains, Time now) {
  stop_ = std::move(stop);
  times_.stop();
  times_.save_begins(now);
  deadline_ = times_.stop_ends_by(now);
  turn(SaveTurn::due);
  // The members that write a save already are asked for another one, which they stop with.
  if (trains) turn(SaveTurn::stopped);
}

void Saves::user_wants_the_end(Time now) {
  if (stop_ && !stop_->if_preempted && !times_.is_up(now)) stop_->time_is_up = false;
}

// ---------------------------------------------------------------- one save

wire::Save Saves::ask(Time now, bool alone) {
  turn(SaveTurn::asked);
  attempt_ = {.number = next_number_++, .last = stopping(), .alone = alone, .asked_at = now};
  return {.number = attempt_.number,
          .folder = save::draft_of(folder_, attempt_.number),
          .stop = attempt_.last,
          .alone = alone};
}

std::int64_t Saves::world_ended() {
  if (!is(SaveState::asked)) return 0;
  turn(SaveTurn::world_ended);
  return attempt_.number;
}

std::string Saves::ready(const wire::TrainSpec& train) {
  if (!under_way() && train.call > kept_.train().call) kept_.forget_earlier_calls();
  return kept_.ready(train);
}

bool Saves::agrees(const wire::Saved& part) const {
  if (attempt_.parts.empty()) return true;
  const wire::Saved& other = attempt_.parts.begin()->second;
  const bool same_state = other.generation == part.generation && other.step == part.step;
  const bool both_known = other.source_layout != 0 && part.source_layout != 0;
  return !same_state || !both_known || other.source_layout == part.source_layout;
}

bool Saves::written(const wire::Saved& part, Time now) {
  if (!is(SaveState::asked) || part.number != attempt_.number) return false;
  if (!attempt_.parts.empty()) {
    const wire::Saved& other = attempt_.parts.begin()->second;
    if (part.generation != other.generation || part.step != other.step || part.size != other.size)
      return false;
  }
  attempt_.parts[part.rank] = part;
  if (static_cast<int>(attempt_.parts.size()) < part.size) return false;
  turn(SaveTurn::written);
  attempt_.written_at = now;
  return true;
}

wire::saved::Manifest Saves::manifest(const std::vector<std::string>& argv) const {
  const wire::Saved& first = attempt_.parts.begin()->second;
  const wire::TrainSpec train = kept_.train_of(first.call);
  wire::saved::Manifest manifest{.step = first.step.value,
                                 .call = first.call,
                                 .epoch = first.epoch,
                                 .cursor = first.cursor,
                                 .samples = train.samples,
                                 .state_bytes = train.state_bytes,
                                 .state_layout = train.state_layout,
                                 .argv = argv};
  for (const auto& [rank, part] : attempt_.parts)
    manifest.files.insert(manifest.files.end(), part.files.begin(), part.files.end());
  return manifest;
}

Saves::Report Saves::sealed(std::string path, wire::saved::Manifest manifest, Time now) {
  turn(SaveTurn::sealed);
  attempt_.lost.reset();
  Report report{.manifest = manifest,
                .took = now - times_.save_began(),
                .last = attempt_.last,
                .alone = attempt_.alone};
  for (const wire::saved::File& file : manifest.files) report.bytes += file.bytes;
  Duration writing{};
  for (const auto& [rank, part] : attempt_.parts) {
    report.held = std::max(report.held, Duration(part.held_ns));
    writing = std::max(writing, Duration(part.took_ns));
  }
  times_.save_ended(writing, writing + (now - attempt_.written_at), now);
  kept_.add({std::move(path), std::move(manifest)});
  if (stopping())
    turn(SaveTurn::due);  // unless it is that of the stop
  else
    deadline_ = never;
  return report;
}

void Saves::give_up(Time now) {
  turn(SaveTurn::given_up);
  attempt_.lost.reset();
  deadline_ = never;
  times_.save_failed(now);
}

bool Saves::wait_for_last(const std::string& why) {
  if (is(SaveState::sealing)) attempt_.lost = why;
  return attempt_.lost.has_value();
}

bool Saves::try_again(Time now) {
  if (!stopping() || ++attempts_ >= most_attempts || now + retry_pause >= deadline_) return false;
  turn(SaveTurn::given_up);
  turn(SaveTurn::due);
  ask_at_ = now + retry_pause;
  return true;
}

}  // namespace elasticrun::job::course
