// Drives the job's core with sockets, processes, signals, timers and the host file. It decides
// nothing itself.
#pragma once

#include <memory>

#include "job/core/terms/events.hpp"
#include "job/report/sink.hpp"
#include "job/spec.hpp"
#include "launcher/machine/machine.hpp"

namespace elasticrun::job::driver {

class Controller {
 public:
  // Runs the job to its end, and returns how it ended. Every process of the job is gone when it
  // returns.
  static Finish run(const JobSpec& spec, const launcher::machine::Machine& machine,
                    report::Sink& sink);
};

}  // namespace elasticrun::job::driver
