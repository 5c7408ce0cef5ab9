// See node_return.hpp.
#include "job/driver/node_return.hpp"

#include <algorithm>
#include <utility>

#include "launcher/srun/shrink.hpp"

namespace elasticrun::job::driver {
namespace {

constexpr Duration patience = std::chrono::seconds(30);

}  // namespace

void NodeReturn::give_back(const GiveBack& order) {
  if (!question_)
    question_.emplace(
        io_, launcher::executors::Hook{launcher::srun::shrink_command(spec_.slurm->job), patience});
  Request request{order, {}};
  for (const HostId host : order.hosts) {
    roster_.give_back(host);
    const std::string name = roster_.name(host);
    // The others are nodes of jobs of their own, which end with their agents.
    if (std::ranges::count(spec_.slurm->hosts, name, &launcher::hosts::Host::name) > 0)
      request.nodes += name + '\n';
  }
  requests_.push_back(std::move(request));
  ask();
}

void NodeReturn::agent_gone(HostId host) {
  for (Request& request : requests_) {
    if (!request.order.with_agent.contains(host)) continue;
    if (agents_.runs(host)) return agents_.kill(host);
    request.order.with_agent.erase(host);
  }
  ask();
}

void NodeReturn::ask() {
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
    answered_({hosts, answer.output ? Result<void>() : answer.output.error()});
    ask();
  });
}

}  // namespace elasticrun::job::driver
