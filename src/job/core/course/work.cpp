// Converts steps to samples (work.hpp).
#include "job/core/course/work.hpp"

#include <limits>

namespace elasticrun::job::course {

void Work::restored(const wire::saved::Manifest& save) {
  restored_call_ = save.call;
  restored_ = {.step = save.step, .epoch = save.epoch, .cursor = save.cursor};
  newest_ = StepId(save.step);
  if (train_.call == restored_call_) from_ = restored_;
}

bool Work::asked(const wire::TrainSpec& train) {
  // A newcomer goes through earlier calls of train, which return at once.
  if (train.samples == 0 || train.call <= train_.call) return false;
  train_ = train;
  from_ = train.call == restored_call_ ? restored_ : Place{.step = newest_.value};
  return true;
}

void Work::world_changed(StepId step, std::int64_t global_batch) {
  from_ = at(std::max(step.value, from_.step));
  committed(step);
  global_batch_ = global_batch;
}

Work::Place Work::at(std::int64_t step) const {
  Place place = from_;
  if (train_.samples <= 0 || global_batch_ <= 0) return place;
  const auto steps_of = [&](std::int64_t samples) {
    return samples / global_batch_ + (samples % global_batch_ > 0 ? 1 : 0);
  };
  std::int64_t steps = step - from_.step;
  place.step = step;
  if (const std::int64_t rest = steps_of(train_.samples - place.cursor);
      place.cursor > 0 && steps >= rest) {
    steps -= rest;
    place.cursor = 0;
    ++place.epoch;
  }
  place.epoch += steps / steps_of(train_.samples);
  place.cursor += steps % steps_of(train_.samples) * global_batch_;
  return place;
}

std::optional<std::int64_t> Work::left() const {
  if (train_.samples <= 0 || train_.epochs <= 0 || global_batch_ <= 0) return {};
  const Place now = at(std::max(newest_.value, from_.step));
  if (now.epoch >= train_.epochs) return 0;
  const std::int64_t epochs = train_.epochs - now.epoch;
  // A program that trains until it is stopped asks for more epochs than can be counted in samples.
  constexpr std::int64_t endless = std::numeric_limits<std::int64_t>::max();
  if (epochs > endless / train_.samples) return endless;
  return std::max<std::int64_t>(epochs * train_.samples - now.cursor, 0);
}

bool Work::may_be_between_epochs() const {
  if (train_.samples > 0 && global_batch_ <= 0) return newest_.value > 0;
  const Place now = at(std::max(newest_.value, from_.step));
  return now.epoch > 0 && now.cursor == 0;
}

}  // namespace elasticrun::job::course
