// What an earlier run has shown, reconstructed from its event log: the measure of each size,
// computed by the same Window that the job used, the batch rule as far as it can be inferred, and
// how much was trained.
//
// A log records what was measured and decided, but not the command line. It holds the batch of each
// size, and the rule is inferred from that: proportional to the number of workers, the same at
// every size, or proportional up to a cap. With only one size, the batch is assumed to be the same
// at every size.
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
  std::vector<autoscaler::Measure> curve;  // sizes with samples, sorted; at least one
  autoscaler::BatchRule batch;
  double samples = 0;  // samples trained, in whole steps
  bool finished = false;
  int slots = 0;           // the most workers the job could have had; 0: not known
  int slots_per_host = 0;  // most workers per host, averaged over a world's hosts; 0: not known
  std::string policy;
  std::string last;  // time of the last event
};

// `events` are in the order of the log.
Result<History> read_history(const std::vector<job::report::Event>& events);

// The throughput of each offered size: as measured, or otherwise as predicted by the laws fitted to
// the measured sizes (time_model.hpp), from the worst to the best law that agrees with them. Only
// sizes, hosts and prices of the offers are used.
std::vector<autoscaler::Chance> chances(const History& history,
                                        const std::vector<autoscaler::Offer>& offers);

}  // namespace elasticrun::simulate::what_if
