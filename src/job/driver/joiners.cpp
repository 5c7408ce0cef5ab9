// See joiners.hpp.
#include "job/driver/joiners.hpp"

#include <fmt/format.h>

#include "launcher/executors/local_executor.hpp"

namespace elasticrun::job::driver {
namespace {

constexpr Duration submission_limit = std::chrono::minutes(1);
constexpr Duration cancellation_limit = std::chrono::seconds(5);

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// What a command of Slurm says against what was asked of it.
std::string trouble_of(const launcher::executors::HookAnswer& answer) {
  return answer.stderr_text.empty() ? answer.output.error().text : first_line(answer.stderr_text);
}

}  // namespace

Result<void> Joiners::invite(const rendezvous::server::HostKey& key,
                             const launcher::executors::AgentStart& told,
                             const std::vector<std::string>& addresses) {
  if (spec_.join_key.empty()) return {};
  auto written = launcher::executors::JoinKey::write(
      spec_.join_key, {told.job, key.identity, key.key_hex, told.version});
  if (!written) return written.error();
  key_ = std::move(*written);
  if (!spec_.slurm_grow.empty()) return ask_slurm(told, addresses.front());
  sink_.log(report::LogLevel::info, "hosts may join: " + launcher::executors::join_command(
                                                             spec_.join_key, addresses, told.port));
  return {};
}

Result<void> Joiners::ask_slurm(const launcher::executors::AgentStart& told,
                                const std::string& address) {
  const auto agent = launcher::executors::find_agent();
  if (!agent) return agent.error();
  array_ = launcher::srun::Array{.name = "elasticrun-" + told.job,
                                 .options = spec_.slurm_grow,
                                 .agent = *agent,
                                 .controller = launcher::executors::join_place(address, told.port),
                                 .key_file = spec_.join_key};
  submission_.emplace(
      io_, launcher::executors::Hook{launcher::srun::submit_command(*array_), submission_limit});
  submission_->run({}, [this](const launcher::executors::HookAnswer& answer) {
    if (answer.output)
      sink_.log(report::LogLevel::info,
                fmt::format("asked Slurm for more nodes: array {}; they join as they start",
                            first_line(*answer.output)));
    else
      sink_.log(
          report::LogLevel::error,
          fmt::format("--slurm-grow: {}; the job goes on without more nodes", trouble_of(answer)));
  });
  return {};
}

void Joiners::close() {
  submission_.reset();
  if (array_) {
    const auto answer = launcher::executors::run_hook(
        {launcher::srun::cancel_command(*array_), cancellation_limit});
    if (!answer.output)
      sink_.log(report::LogLevel::error,
                fmt::format("{}: {}; do that yourself", launcher::srun::cancel_command(*array_),
                            trouble_of(answer)));
  }
  if (key_ && !key_->remove())
    sink_.log(report::LogLevel::error,
              fmt::format("--join-key {}: its file system does not answer; remove it yourself",
                          spec_.join_key));
}

}  // namespace elasticrun::job::driver
