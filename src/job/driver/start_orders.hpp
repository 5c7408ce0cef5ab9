// What an agent is told to start: the program, and the environment that says which worker it is.
#pragma once

#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "job/core/hosts/roster.hpp"
#include "job/core/terms/events.hpp"
#include "job/spec.hpp"
#include "wire/messages.hpp"

namespace elasticrun::job::driver {

class StartOrders {
 public:
  // Errors: a variable of the caller that is to be passed on cannot be.
  static Result<StartOrders> make(const JobSpec& spec, std::string job_id);

  // `here`: its host is the machine of the controller.
  wire::StartWorker order(const job::StartWorker& start, const hosts::Roster& roster,
                          bool here) const;

 private:
  explicit StartOrders(const JobSpec& spec, std::string job_id)
      : spec_(&spec), job_id_(std::move(job_id)) {}

  const JobSpec* spec_;
  std::string job_id_;
  std::vector<std::string> passed_here_, passed_elsewhere_;  // of the caller's environment
};

}  // namespace elasticrun::job::driver
