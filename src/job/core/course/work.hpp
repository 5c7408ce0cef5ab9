// How much of the work that the program asked for is left, computed from the committed steps.
//
// Workers report steps, not samples, and no message says how large a step was: the last one of an
// epoch is smaller. But the batch of each world is known, and with it how steps use up epochs, so
// the count is exact whatever the size was. Counting the samples in messages instead would drift:
// a worker that dies has not reported its last ones.
//
// Only the present call of `train` is known. A program that calls it again asks for more.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/ids.hpp"
#include "wire/messages.hpp"

namespace elasticrun::job::course {

class Work {
 public:
  // The next world begins at this place, from a save.
  void restored(const wire::saved::Manifest& save);
  // A worker is about to train; the first one in a new call of `train` that says how much begins
  // that call: true.
  bool asked(const wire::TrainSpec& train);
  // From this committed step on, a step takes `global_batch` samples; 0: not known.
  void world_changed(StepId step, std::int64_t global_batch);
  // Of the present world; 0: not known.
  std::int64_t global_batch() const { return global_batch_; }
  void committed(StepId step) { newest_ = std::max(newest_, step); }

  // The program says how many samples it trains; false for one with its own loop.
  bool counts_samples() const {
    return train_.samples > 0 && train_.epochs > 0 && (global_batch_ > 0 || train_.batch > 0);
  }
  // Samples left in this call; nothing when the program did not say, or has its own loop.
  std::optional<std::int64_t> left() const;
  // The newest known step may be the last one of an epoch: the program is in on_epoch, if it has
  // one, or in the step after it. Where members step before it is known that their world has
  // formed, that cannot be told apart.
  bool may_be_between_epochs() const;

 private:
  struct Place {
    std::int64_t step = 0;    // the last committed one
    std::int64_t epoch = 0;   // from 0
    std::int64_t cursor = 0;  // number of used samples of that epoch
  };
  Place at(std::int64_t step) const;

  wire::TrainSpec train_;
  std::int64_t global_batch_ = 0;
  Place from_;  // where this call, or this world, began
  // The call of the save that was restored, and the place in it; call 0: none was.
  std::int64_t restored_call_ = 0;
  Place restored_;
  StepId newest_{0};
};

}  // namespace elasticrun::job::course
