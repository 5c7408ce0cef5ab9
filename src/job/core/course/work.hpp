// How much of what the program asked for is left, told from the steps that are committed.
//
// Workers report steps, not samples, and of a step nobody says how large it was: the last one of an
// epoch is smaller. But the batch of each world is known, and with it how steps use up epochs, so
// the count is exact whatever the size was. Counting the samples of reports instead would drift:
// who dies has not reported its last ones.
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
  // A worker is about to train; the first one that says so of a new call begins it.
  void asked(const wire::TrainSpec& train);
  // From this committed step on a step takes so many samples; 0: not known.
  void world_changed(Step step, std::int64_t global_batch);
  // Of the present world; 0: not known.
  std::int64_t global_batch() const { return global_batch_; }
  void committed(Step step) { newest_ = std::max(newest_, step); }

  // Samples of this call; nothing when the program did not say, or has a loop of its own.
  std::optional<std::int64_t> left() const;
  // The newest step that is known is the last one of an epoch: the program is in on_epoch, if it
  // has one, or in the step behind it.
  bool between_epochs() const;

 private:
  struct Place {
    std::int64_t step = 0;    // committed then
    std::int64_t epoch = 0;   // from 0
    std::int64_t cursor = 0;  // samples of that epoch that are used
  };
  Place at(std::int64_t step) const;

  wire::TrainSpec train_;
  std::int64_t global_batch_ = 0;
  Place from_;  // where this call, or this world, began
  Step newest_{0};
};

}  // namespace elasticrun::job::course
