// Whether the steps of a program's own loop can be measured: only the program knows how many
// samples they have. If it does not say, the job would go on measuring for ever, and the user would
// not learn of it. Pure.
#pragma once

#include <cstdint>

#include "wire/messages.hpp"

namespace elasticrun::job::course {

class Uncounted {
 public:
  // After this many steps, counted over all workers, a program that has not yet said how many
  // samples its steps have never will.
  static constexpr std::int64_t steps_enough = 20;

  void ready(const wire::TrainSpec& train) { own_loop_ = train.samples == 0; }
  // True once: the loop has made that many steps and does not say how many samples they have.
  bool hear(const wire::Sample& sample) {
    if (!own_loop_ || known_) return false;
    steps_ += sample.steps;
    known_ = sample.samples > 0 || steps_ >= steps_enough;
    return known_ && sample.samples == 0;
  }

 private:
  bool own_loop_ = false;
  bool known_ = false;  // whether the program says so or not
  std::int64_t steps_ = 0;
};

}  // namespace elasticrun::job::course
