// See start_orders.hpp.
#include "job/driver/start_orders.hpp"

#include <fmt/format.h>

#include <utility>

#include "launcher/machine/environment.hpp"
#include "wire/codec.hpp"
#include "wire/limits.hpp"

namespace elasticrun::job::driver {
namespace {

// An agent refuses a longer order. 256 KiB are left for what differs from worker to worker.
Result<void> fits_a_frame(const JobSpec& spec, const std::vector<std::string>& environment) {
  constexpr std::size_t most = wire::frame_bytes_max - (256u << 10);
  const wire::agent::StartWorker order{.argv = spec.argv, .env = environment, .cwd = spec.cwd};
  const std::size_t bytes = wire::encode(wire::agent::ToAgent(order)).size();
  if (bytes <= most) return {};
  return Error{
      fmt::format("the command and its environment take {} bytes on their way to the hosts, "
                  "and at most {} fit; -x and --no-env choose the environment",
                  bytes, most)};
}

}  // namespace

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
    if (auto fits = fits_a_frame(spec, *passed); !fits) return fits.error();
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
