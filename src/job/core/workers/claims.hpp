// What a worker cannot truthfully report, although its message is well formed: a step that no world
// has had the time to reach, a world that has never been prepared, a time of a century. Such
// numbers would end a job whose training is not over, or overflow where they are added.
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

// A job that began with the state after step `from`, this long ago. The bound is generous: a world
// makes far fewer than ten million steps a second.
Possible possible_after(Duration elapsed, StepId from, Generation newest);

// What the message claims in vain, for the user; empty: it may be true.
std::string false_claim(const wire::FromWorker& message, const Possible& possible);

}  // namespace elasticrun::job::workers
