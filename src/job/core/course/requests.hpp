// What a job asks of its world, beside steps: planned changes, and saves of its state. One of them
// at a time.
#pragma once

#include "job/core/course/changes.hpp"
#include "job/core/course/saves.hpp"

namespace elasticrun::job::course {

struct Requests {
  Changes changes;
  Saves saves;
};

}  // namespace elasticrun::job::course
