// See slurm_nodes.hpp.
#include "job/driver/slurm_nodes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "launcher/srun/shrink.hpp"

namespace elasticrun::job::driver {
namespace {

constexpr Duration patience = std::chrono::seconds(30);

}  // namespace

void SlurmNodes::start() {
  if (!spec_.slurm || spec_.slurm->hosts.size() < 2) return;
  const auto note = [this](const std::string& line) { handlers_.event(HostsNoted{false, line}); };
  watch_.emplace(
      io_, spec_.slurm->job,
      launcher::srun::NodeWatch::Handlers{
          .goes = [this](const std::string& node, const std::string& why) { goes(node, why); },
          .stays = [this](const std::string& node, const std::string& why) { stays(node, why); },
          .line = note});
  watch_->start();
}

void SlurmNodes::stop() {
  question_.reset();
  if (watch_) watch_->stop();
}

// ---------------------------------------------------------------- drained and resumed

void SlurmNodes::goes(const std::string& node, const std::string& why) {
  const auto host = roster_.given(node);
  if (!host) return;
  roster_.drain(*host);
  handlers_.event(nodes::Drained{*host, why});
  handlers_.changed(roster_.name(*host) + " will go");
}

void SlurmNodes::stays(const std::string& node, const std::string& why) {
  const auto host = roster_.given(node);
  if (!host) return;
  roster_.resume(*host);
  const std::string news = roster_.name(*host) + " may be used again";
  handlers_.event(nodes::Resumed{*host, fmt::format("{}: {}", news, why)});
  handlers_.changed(news);
}

// ---------------------------------------------------------------- given back

void SlurmNodes::give_back(const GiveBack& order) {
  if (!question_)
    question_.emplace(
        io_, launcher::executors::Hook{launcher::srun::shrink_command(spec_.slurm->job), patience});
  Request request{order, {}};
  for (const HostId host : order.hosts) {
    roster_.give_back(host);
    if (agents_.runs(host)) request.order.with_agent.insert(host);
    const std::string name = roster_.name(host);
    // The others are nodes of jobs of their own, which end with their agents.
    if (std::ranges::count(spec_.slurm->hosts, name, &launcher::hosts::Host::name) > 0)
      request.nodes += name + '\n';
  }
  requests_.push_back(std::move(request));
  ask();
}

// srun does not report the end of one agent of a step. So the agent of a host that the job no
// longer uses is killed at once: later its process number may belong to another process.
void SlurmNodes::agent_gone(HostId host) {
  const bool by_srun = spec_.slurm && !agents_.is_here(host);
  if (by_srun && roster_.dropped().contains(host) && agents_.runs(host)) agents_.kill(host);
  for (Request& request : requests_) {
    if (!request.order.with_agent.contains(host)) continue;
    if (agents_.runs(host)) return agents_.kill(host);
    request.order.with_agent.erase(host);
  }
  ask();
}

void SlurmNodes::ask() {
  if (!question_ || under_way_ || requests_.empty()) return;
  const Request& first = requests_.front();
  if (!first.order.with_agent.empty()) return;
  under_way_ = true;
  question_->run(first.nodes, [this](const launcher::executors::HookAnswer& answer) {
    under_way_ = false;
    const std::vector<HostId> hosts = std::move(requests_.front().order.hosts);
    requests_.erase(requests_.begin());
    if (!answer.output)
      for (const HostId host : hosts) roster_.keep(host);
    handlers_.event(
        GiveBack::Answer{hosts, answer.output ? Result<void>() : answer.output.error()});
    handlers_.changed("the hosts were changed");
    ask();
  });
}

}  // namespace elasticrun::job::driver
