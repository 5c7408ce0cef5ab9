// See agents.hpp.
#include "job/driver/agents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>

#include "launcher/bundle/file_hash.hpp"
#include "launcher/executors/local_executor.hpp"
#include "launcher/machine/network.hpp"
#include "launcher/srun/executor.hpp"
#include "launcher/ssh/executor.hpp"
#include "wire/limits.hpp"

namespace elasticrun::job::driver {
namespace {

constexpr const char* loopback = "127.0.0.1";

}  // namespace

wire::Welcome welcome_of(const launcher::executors::AgentStart& told) {
  return {.protocol = wire::protocol,
          .version = told.version,
          .term = told.term,
          .lease_ms = told.lease_ms,
          .heartbeat_ms = told.heartbeat_ms,
          .orphan_grace_ms = told.orphan_grace_ms,
          .standstill_ms = told.standstill_ms,
          .notice = told.notice};
}

Agents::Agents(boost::asio::io_context& io, const JobSpec& spec, hosts::Roster& roster,
               const launcher::machine::Machine& machine, const rendezvous::server::HostKeys& keys,
               Handlers handlers)
    : io_(io),
      spec_(spec),
      roster_(roster),
      machine_(machine),
      keys_(keys),
      handlers_(std::move(handlers)) {}

Agents::~Agents() = default;

launcher::executors::ExecutorHandlers Agents::handlers_for_executor() {
  return {.on_exit = [this](HostId host, const std::string& reason) { ended(host, reason); },
          .on_line = handlers_.line,
          .on_note = handlers_.note};
}

launcher::executors::AgentStart Agents::start_of(const std::string& job) const {
  launcher::executors::AgentStart start;
  start.job = job;
  start.term = first_term;
  start.network = spec_.network;
  const auto ms = [](Duration d) { return static_cast<std::int64_t>(milliseconds(d)); };
  start.lease_ms = ms(spec_.deadlines.lease);
  start.heartbeat_ms = ms(spec_.deadlines.heartbeat);
  start.orphan_grace_ms = ms(spec_.deadlines.orphan_grace);
  start.standstill_ms = ms(spec_.deadlines.standstill_timeout);
  start.version = ELASTICRUN_VERSION;
  start.notice = spec_.notice;
  return start;
}

// A job whose hosts are all this machine listens on the loopback address only, unless a host file,
// a discovery program or a join key may bring in other machines later.
Result<void> Agents::prepare(const std::string& job) {
  auto agent = launcher::executors::find_agent();
  if (!agent) return agent.error();
  local_ = std::make_unique<launcher::executors::LocalExecutor>(
      io_, *agent, handlers_for_executor(), spec_.wrap);

  const bool here_alone = spec_.hosts_file.empty() && spec_.host_discovery.empty() &&
                          spec_.join_key.empty() &&
                          std::ranges::all_of(spec_.hosts, [&](const launcher::hosts::Host& host) {
                            return launcher::hosts::is_this_machine(host, machine_.own);
                          });
  const auto own = launcher::machine::own_addresses();
  const bool bind_is_idle = here_alone && launcher::machine::is_loopback(spec_.bind);
  auto for_others =
      launcher::machine::addresses_for_others(own, bind_is_idle ? std::string() : spec_.bind);
  if (!for_others) return Error{"--bind: " + for_others.error().text};
  for_others_ = std::move(*for_others);
  if (auto network = launcher::machine::addresses_for_others(own, spec_.network); !network)
    return Error{"--network: " + network.error().text};

  if (here_alone) {
    listen_address_ = loopback;
    return {};
  }

  const bool v6 = std::ranges::any_of(
      own, [](const auto& one) { return one.address.find(':') != std::string::npos; });
  listen_address_ = !spec_.bind.empty() ? for_others_.front() : v6 ? "::" : "0.0.0.0";
  return spec_.slurm ? prepare_srun(*agent, job) : prepare_ssh(*agent, job);
}

Result<void> Agents::prepare_srun(const std::string& agent, const std::string& job) {
  const auto hash = launcher::bundle::hash_of_file(agent);
  if (!hash) return hash.error();
  const rendezvous::server::HostKey step = keys_.of_step();
  srun_ = std::make_unique<launcher::srun::SrunExecutor>(
      io_,
      launcher::srun::SrunOptions{
          .agent = agent,
          .hash = *hash,
          .wrap = spec_.wrap,
          .step_identity = step.identity,
          .step_key_hex = step.key_hex,
          .component_of = [this](HostId host) { return component_of(host); },
          .seed = std::hash<std::string>{}(job)},
      handlers_for_executor());
  return {};
}

int Agents::component_of(HostId host) const {
  const std::vector<int>& components = spec_.slurm->components;
  const auto& hosts = spec_.slurm->hosts;
  const auto found =
      std::ranges::find(hosts, roster_.name(host), &launcher::hosts::Host::name) - hosts.begin();
  return found < std::ssize(components) ? components[static_cast<std::size_t>(found)] : -1;
}

Result<void> Agents::prepare_ssh(const std::string& agent, const std::string& job) {
  launcher::ssh::SshOptions options;
  options.agent = agent;
  options.wrap = spec_.wrap;
  options.overrides = spec_.ssh;
  // Two jobs that run at the same time must not give their files on a host the same names.
  options.seed = std::hash<std::string>{}(job);
  auto ssh = launcher::ssh::SshExecutor::make(
      io_, std::move(options), [this](HostId host) { return roster_.at(host); },
      handlers_for_executor());
  if (!ssh) return ssh.error();
  ssh_ = std::move(*ssh);
  return {};
}

std::optional<HostId> Agents::awaited(const std::string& name) const {
  for (const HostId host : awaited_)
    if (roster_.name(host) == name) return host;
  return std::nullopt;
}

bool Agents::is_here(HostId host) const {
  return !roster_.contains(host) ||
         launcher::hosts::is_this_machine(roster_.at(host), machine_.own);
}

HostsMet Agents::marked(HostsMet met) const {
  for (HostsMet::Host& host : met.hosts) host.stays = is_here(host.host);
  return met;
}

launcher::executors::Executor& Agents::executor_of(HostId host) {
  return is_here(host) ? *local_ : srun_ ? *srun_ : *ssh_;
}

void Agents::start(HostId host) {
  if (!running_.contains(host)) return start_now(host);
  // The control connection of the old agent is gone, but the process that carries the agent (ssh,
  // say) has not ended and may hang.
  waiting_.insert(host);
  executor_of(host).kill(host);
}

void Agents::start_now(HostId host) {
  launcher::executors::AgentStart start = common_;
  start.host = host;
  rendezvous::server::HostKey key = keys_.of_agent(host, roster_.next_run(host));
  start.identity = std::move(key.identity);
  start.key_hex = std::move(key.key_hex);
  start.name = roster_.name(host);
  start.addresses = for_others_;
  if (is_here(host) && (spec_.bind.empty() || listen_address_ == loopback))
    start.addresses = {loopback};
  start.address = roster_.at(host).address;
  running_.insert(host);
  if (srun_ && !is_here(host)) awaited_.insert(host);
  executor_of(host).start(start);
}

void Agents::ended(HostId host, const std::string& reason) {
  running_.erase(host);
  awaited_.erase(host);
  if (waiting_.erase(host) > 0) return start_now(host);
  handlers_.gone(host, reason);
}

void Agents::kill(HostId host) {
  if (running_.contains(host)) executor_of(host).kill(host);
}

void Agents::kill_all() {
  for (const HostId host : running_) executor_of(host).kill(host);
  running_.clear();
}

}  // namespace elasticrun::job::driver
