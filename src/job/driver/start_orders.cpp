// See start_orders.hpp.
#include "job/driver/start_orders.hpp"

#include <fmt/format.h>

#include <utility>

#include "launcher/machine/environment.hpp"

namespace elasticrun::job::driver {

Result<StartOrders> StartOrders::make(const JobSpec& spec, std::string job_id) {
  StartOrders orders(spec, std::move(job_id));
  for (const bool here : {true, false}) {
    auto passed =
        launcher::machine::passed_environment(spec.caller_environment, spec.environment, here);
    if (!passed) return passed.error();
    passed->push_back(fmt::format("ELASTICRUN_SAMPLE_MS={}",
                                  static_cast<long>(milliseconds(spec.deadlines.sample_interval))));
    if (spec.verify_state > 0)
      passed->push_back(fmt::format("ELASTICRUN_VERIFY_STATE={}", spec.verify_state));
    if (!spec.saving.folder.empty()) passed->push_back("ELASTICRUN_SAVE=" + spec.saving.folder);
    (here ? orders.passed_here_ : orders.passed_elsewhere_) = std::move(*passed);
  }
  return orders;
}

wire::agent::StartWorker StartOrders::order(const StartWorker& start, const hosts::Roster& roster,
                                            bool here) const {
  const HostId host = start.slot.host;
  launcher::machine::JobFacts facts{.job_id = job_id_, .host_name = roster.name(host)};
  const auto [address, port] = roster.meeting_on(start.place.first_host, start.place.groups == 1);
  facts.master_address = address;
  facts.master_port = port;
  facts.restart_count = start.restarts;
  facts.max_restarts = spec_->max_restarts.value_or(0);
  facts.generation = start.generation;
  facts.max_batch = spec_->batch.max_batch;
  facts.backend = spec_->backend;
  if (!names(spec_->environment, "CUDA_VISIBLE_DEVICES")) facts.gpus = roster.gpus(host);
  facts.one_gpu_visible = spec_->one_gpu_visible;
  return {.worker = start.worker,
          .slot = start.slot.index,
          .argv = spec_->argv,
          .env = launcher::machine::worker_environment(start.place, facts,
                                                       here ? passed_here_ : passed_elsewhere_),
          .cwd = spec_->cwd,
          .after_ms = static_cast<std::int32_t>(milliseconds(start.after))};
}

}  // namespace elasticrun::job::driver
