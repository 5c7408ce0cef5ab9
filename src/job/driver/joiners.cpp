// See joiners.hpp.
#include "job/driver/joiners.hpp"

#include <fmt/format.h>

#include "launcher/executors/hook_process.hpp"
#include "launcher/executors/local_executor.hpp"

namespace elasticrun::job::driver {
namespace {

constexpr Duration submission_limit = std::chrono::seconds(20);
constexpr Duration cancellation_limit = std::chrono::seconds(5);

}  // namespace

Result<void> Joiners::invite(const rendezvous::server::HostKey& key,
                             const launcher::executors::AgentStart& told,
                             const std::vector<std::string>& addresses) {
  if (spec_.join_key.empty()) return {};
  auto written = launcher::executors::JoinKey::write(
      spec_.join_key, {told.job, key.identity, key.key_hex, told.version});
  if (!written) return written.error();
  key_ = std::move(*written);
  sink_.log(report::LogLevel::info, "hosts may join: " + launcher::executors::join_command(
                                                             spec_.join_key, addresses, told.port));
  return spec_.slurm_grow.empty() ? Result<void>() : ask_slurm(told, addresses);
}

Result<void> Joiners::ask_slurm(const launcher::executors::AgentStart& told,
                                const std::vector<std::string>& addresses) {
  if (addresses.empty()) return Error{"--slurm-grow: no other machine can connect to this one"};
  const auto agent = launcher::executors::find_agent();
  if (!agent) return agent.error();
  array_ = launcher::srun::Array{
      .name = "elasticrun-" + told.job,
      .options = spec_.slurm_grow,
      .agent = *agent,
      .slots = spec_.slots_are_gpus ? 0 : spec_.default_slots,
      .controller = launcher::executors::join_place(addresses.front(), told.port),
      .key_file = spec_.join_key};
  const auto answer =
      launcher::executors::run_hook({launcher::srun::submit_command(*array_), submission_limit});
  if (!answer.output)
    return Error{fmt::format("--slurm-grow: sbatch: {}", answer.output.error().text)};
  sink_.log(report::LogLevel::info,
            fmt::format("asked Slurm for more nodes: array {}; they join as it starts them",
                        answer.output->substr(0, answer.output->find('\n'))));
  return {};
}

void Joiners::close() {
  if (array_) {
    const std::string command = launcher::srun::cancel_command(*array_);
    const auto answer = launcher::executors::run_hook({command, cancellation_limit});
    if (!answer.output)
      sink_.log(report::LogLevel::error,
                fmt::format("{}: {}; do that yourself", command, answer.output.error().text));
    array_.reset();
  }
  if (key_ && !key_->remove())
    sink_.log(report::LogLevel::error,
              fmt::format("--join-key {}: its file system does not answer; remove it yourself",
                          spec_.join_key));
}

}  // namespace elasticrun::job::driver
