// The whole saves of the state that are there: what a job goes on from, and what a world begins
// with when no worker holds the state. Pure.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "wire/messages.hpp"
#include "wire/saved/manifest.hpp"

namespace elasticrun::job::course {

class KeptSaves {
 public:
  // `found`: what the folder held at the start, the newest first.
  explicit KeptSaves(std::vector<wire::saved::Save> found);

  // Null: there is none.
  const wire::saved::Save* newest() const { return saves_.empty() ? nullptr : &saves_.front(); }
  // Its step; 0: there is none.
  StepId newest_step() const { return newest() ? StepId(newest()->manifest.step) : StepId(0); }
  // Which one that is, as a text.
  std::string words() const;
  void add(wire::saved::Save save);
  // It cannot be used: the one before counts as the newest.
  void refuse(const std::string& path);
  // Counts the worlds in which a reader of the newest save got an error of the system, each once.
  // True: several in a row, so the fault is neither one reader's nor a moment's.
  bool count_failed_reading(Generation world) {
    if (std::exchange(failed_in_, world) != world) ++failed_readings_;
    return failed_readings_ >= failed_readings_max;
  }
  // A world has read it, or another one is the newest.
  void forget_failed_readings() { failed_readings_ = 0; }
  // The step that the job has gone on from at its start; nothing: it has begun afresh.
  std::optional<StepId> resumed_from() const { return resumed_from_; }

  // A worker is about to train. Returns why it cannot go on from the newest save; empty: it can, or
  // there is none.
  std::string ready(const wire::TrainSpec& train);
  // As the workers have said, of the newest call.
  const wire::TrainSpec& train() const { return trains_.rbegin()->second; }
  // Of any call whose state may be saved. Of one that no worker has begun yet: the state as in the
  // call before, and no samples.
  wire::TrainSpec train_of(std::int64_t call) const;
  // No save of an earlier call than the newest one follows.
  void forget_earlier_calls() { trains_.erase(trains_.begin(), std::prev(trains_.end())); }

 private:
  std::vector<wire::saved::Save> saves_;  // the newest first
  std::optional<StepId> resumed_from_;
  static constexpr int failed_readings_max = 3;
  int failed_readings_ = 0;                                  // of the newest save
  Generation failed_in_;                                     // the last world of these
  std::map<std::int64_t, wire::TrainSpec> trains_{{0, {}}};  // by call
};

}  // namespace elasticrun::job::course
