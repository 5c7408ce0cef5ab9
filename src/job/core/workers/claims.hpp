// Finds numbers in a worker's message that cannot be true, although the message is well formed: a
// step that no world has had the time to reach, a world that was never prepared, a time of a
// century. Such numbers could end a job in mid-training, or overflow in a sum.
//
// A worker that claims them has a broken or hostile library, and is given up. Pure.
#pragma once

#include <string>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "wire/messages.hpp"

namespace elasticrun::job::workers {

// The most that a truthful worker can report.
struct Possible {
  Generation generation;  // the newest that was ever prepared
  StepId step;
};

// For a job that began `elapsed` ago with the state after step `from`. The bound is generous: a
// world makes far fewer than ten million steps a second.
Possible possible_after(Duration elapsed, StepId from, Generation newest);

// The first claim of the message that cannot be true, as text for the user; empty: all may be true.
std::string false_claim(const wire::FromWorker& message, const Possible& possible);

}  // namespace elasticrun::job::workers
