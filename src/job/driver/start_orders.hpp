// Builds the order by which an agent starts a worker: the program, and the environment that tells
// the worker which one it is.
#pragma once

#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "job/core/hosts/roster.hpp"
#include "job/core/terms/events.hpp"
#include "job/spec.hpp"
#include "wire/agent/messages.hpp"

namespace elasticrun::job::driver {

class StartOrders {
 public:
  // An error when a variable that the user wants passed on (-x) cannot be.
  static Result<StartOrders> make(const JobSpec& spec, std::string job_id);

  // `here`: the worker's host is the machine of the controller.
  wire::agent::StartWorker order(const StartWorker& start, const hosts::Roster& roster,
                                 bool here) const;

 private:
  explicit StartOrders(const JobSpec& spec, std::string job_id)
      : spec_(&spec), job_id_(std::move(job_id)) {}

  const JobSpec* spec_;
  std::string job_id_;
  std::vector<std::string> passed_here_, passed_elsewhere_;  // parts of the caller's environment
};

}  // namespace elasticrun::job::driver
