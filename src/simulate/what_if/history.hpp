// What an earlier run has shown, put together again from its events: the measure of each size by
// the window that the job itself had, the batch rule as far as it shows, and how much was trained.
//
// A log says what was measured and decided, not what was said on the command line. The batch of
// each size is in it, and the rule is read off that: in proportion to the workers, the same at
// every size, or the one up to a cap. With one size only, it is taken for the same at every size.
#pragma once

#include <string>
#include <vector>

#include "autoscaler/batch_plan.hpp"
#include "autoscaler/forecast.hpp"
#include "autoscaler/policy.hpp"
#include "autoscaler/samples.hpp"
#include "base/result.hpp"
#include "job/report/event.hpp"

namespace elasticrun::simulate::what_if {

struct History {
  std::vector<autoscaler::Measure> curve;  // sizes with samples, in order; at least one
  autoscaler::BatchRule batch;
  double samples = 0;  // trained, in whole steps
  bool finished = false;
  int slots = 0;           // the most workers it could have had; 0: not known
  int slots_per_host = 0;  // as most hosts had; 0: not known
  std::string policy;
  std::string last;  // time of the last event
};

// Events in the order of the log.
Result<History> read_history(const std::vector<job::report::Event>& events);

// What each size brings: as measured, else as the law says that is fitted to the measured ones
// (time_model.hpp), from the worst to the best of those that they bear. Of the offers only sizes,
// hosts and prices count.
std::vector<autoscaler::Chance> chances(const History& history,
                                        const std::vector<autoscaler::Offer>& offers);

}  // namespace elasticrun::simulate::what_if
