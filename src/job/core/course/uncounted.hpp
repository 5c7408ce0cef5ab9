// Whether the steps of a loop of the program's own can be measured: only the program knows how many
// samples they have, and one that does not say would be measured for ever, without a word. Pure.
#pragma once

#include <cstdint>

#include "wire/messages.hpp"

namespace elasticrun::job::course {

class Uncounted {
 public:
  // Steps of all workers by which one has said it, if any does.
  static constexpr std::int64_t steps_enough = 20;

  void ready(const wire::TrainSpec& train) { own_loop_ = train.samples == 0; }
  // True once: the loop has made steps and does not say of how many samples.
  bool hear(const wire::Sample& sample) {
    if (!own_loop_ || known_) return false;
    steps_ += sample.steps;
    known_ = sample.samples > 0 || steps_ >= steps_enough;
    return known_ && sample.samples == 0;
  }

 private:
  bool own_loop_ = false;
  bool known_ = false;  // whether it says so or not
  std::int64_t steps_ = 0;
};

}  // namespace elasticrun::job::course
