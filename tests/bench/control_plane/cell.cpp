#include "tests/bench/control_plane/cell.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <new>
#include <utility>

namespace elasticrun::bench {
namespace {

using std::chrono::milliseconds;

constexpr int slots_per_host = 8;
constexpr Duration patience = std::chrono::minutes(5);  // on the virtual clock, for one phase

// An environment as large as that of a shell on a cluster.
std::vector<std::string> environment() {
  std::vector<std::string> variables;
  for (int i = 0; i < 40; ++i)
    variables.push_back(
        fmt::format("VARIABLE_{:02}=/opt/software/package-{:02}/lib:/usr/lib", i, i));
  return variables;
}

job::JobSpec job_spec(std::vector<launcher::hosts::Host> hosts) {
  job::JobSpec spec;
  spec.argv = {"./train", "--data", "/data/set", "--epochs", "90"};
  spec.cwd = "/home/person/project";
  spec.hosts = std::move(hosts);
  spec.hosts_file = "hosts.txt";
  spec.caller_environment = environment();
  return spec;
}

launcher::agent::AgentLimits agent_limits() {
  const job::Deadlines deadlines;
  return {Term(1), deadlines.lease, deadlines.heartbeat, deadlines.orphan_grace,
          deadlines.standstill_timeout};
}

}  // namespace

const std::vector<std::string>& phase_names() {
  static const std::vector<std::string> names = {"start",     "steady",      "shrink",
                                                 "grow",      "lose worker", "replace it",
                                                 "lose host", "replace 8",   "end"};
  return names;
}

Cell::Cell(const CellOptions& options)
    : options_(options),
      hosts_count_((static_cast<std::size_t>(options.workers) + slots_per_host - 1) /
                   slots_per_host),
      fewer_hosts_(hosts_count_ - std::max<std::size_t>(hosts_count_ / 10, 1)),
      account_(queue_, options.limit),
      training_(queue_, handlers_of_training(workers_)),
      cluster_{queue_, training_, workers_, agent_limits(), {}},
      controller_(queue_, account_, job_spec(hosts(hosts_count_)),
                  {.start_agent = [this](HostId host) { start_agent(host); },
                   .kill_agent = [this](HostId host) { kill_agent(host); },
                   .send =
                       [this](HostId host, const std::string& bytes) {
                         const auto agent = agents_.find(host);
                         if (agent == agents_.end()) return;
                         const auto keep = agent->second;
                         keep->receive(bytes);
                       }}) {}

// ---------------------------------------------------------------- hosts

std::vector<launcher::hosts::Host> Cell::hosts(std::size_t count) const {
  std::vector<launcher::hosts::Host> list;
  for (std::size_t i = 0; i < count; ++i) {
    launcher::hosts::Host host;
    host.name = fmt::format("node{:05}", i);
    const std::size_t left = static_cast<std::size_t>(options_.workers) - i * slots_per_host;
    host.slots = static_cast<int>(std::min<std::size_t>(left, slots_per_host));
    list.push_back(host);
  }
  return list;
}

std::size_t Cell::slots_of(std::size_t hosts) const {
  return std::min(hosts * slots_per_host, static_cast<std::size_t>(options_.workers));
}

// Agents come up one after the other, as they do over ssh.
void Cell::start_agent(HostId host) {
  const Duration delay = milliseconds(100 + host.value * 7919ull % 900);
  queue_.after(delay, [this, host] {
    const auto line = std::make_shared<Line>(
        queue_, [this, host](std::string_view bytes) { controller_.receive(host, bytes); });
    line->connect(std::make_shared<StubHost>(cluster_, line->uplink()));
    agents_[host] = line;
    controller_.agent_up(host);
    line->host().begin();
  });
}

void Cell::kill_agent(HostId host) {
  if (const auto agent = agents_.find(host); agent != agents_.end()) agent->second->host().die();
  queue_.after(milliseconds(1), [this, host] { controller_.agent_gone(host, "was killed"); });
}

std::size_t Cell::lose_worker() {
  const WorkerId victim = training_.members()[training_.members().size() / 2];
  const auto process = workers_.at(victim);
  process->die(0, SIGKILL);  // a SIGKILL: the job must not suspect the step
  training_.die({victim});
  return 1;
}

// The agent is killed; its watchdog kills the workers and reports it.
std::size_t Cell::lose_host() {
  const HostId host(static_cast<HostId::rep>(hosts_count_ / 2));
  StubHost& agent = agents_.at(host)->host();
  std::vector<WorkerId> dead;
  for (const auto& [id, worker] : agent.workers()) dead.push_back(id);
  agent.die();
  training_.die(dead);
  queue_.after(milliseconds(5), [this, host] { controller_.agent_gone(host, "its agent died"); });
  return dead.size();
}

// ---------------------------------------------------------------- phases

bool Cell::whole(std::size_t workers) const {
  return training_.settled(workers) && workers_.size() == workers;
}

void Cell::until(const Condition& reached) {
  const Time limit = queue_.now() + patience;
  while (!reached()) {
    if (controller_.finished())
      throw std::runtime_error("the job ended: " + controller_.last_words());
    if (queue_.now() > limit || !queue_.run_next())
      throw std::runtime_error(
          fmt::format("nothing came of it in {} of virtual time{}{}", to_text(patience),
                      controller_.last_error().empty() ? "" : "; ", controller_.last_error()));
  }
}

void Cell::let_pass(Duration time) {
  const Time end = queue_.now() + time;
  queue_.at(end, [] {});
  until([&] { return queue_.now() >= end; });
}

PhaseResult Cell::phase(const std::string& name) {
  PhaseResult result{.name = name};
  const Time begin = queue_.now();
  const std::size_t all = slots_of(hosts_count_), fewer = slots_of(fewer_hosts_);
  std::size_t lost = 0;
  account_.begin_phase();
  try {
    if (name == "start" || name == "grow") controller_.give(hosts(hosts_count_));
    if (name == "shrink") controller_.give(hosts(fewer_hosts_));
    if (name == "lose worker") lost = lose_worker();
    if (name == "lose host") lost = lose_host();
    if (name == "end") training_.finish();
    if (name == "steady")
      let_pass(options_.steady);
    else if (name == "end")
      until([this] { return controller_.finished(); });
    else if (lost > 0)
      until([&] { return training_.runs(all - lost); });
    else
      until([&] { return whole(name == "shrink" ? fewer : all); });
    // The work that follows from the last message belongs to this phase.
    if (name != "end" && name != "steady") let_pass(milliseconds(5));
  } catch (const OverLimit& over) {
    result.cut = over.what();
  } catch (const std::bad_alloc&) {
    result.cut = "it needs more memory than --memory allows";
    result.sound = false;
  } catch (const std::exception& error) {
    result.cut = error.what();
    result.sound = false;
  }
  result.took = queue_.now() - begin;
  result.cost = account_.end_phase();
  if (name == "end" && result.cut.empty() && controller_.exit_code() != 0)
    result.cut = "the job failed: " + controller_.last_words();
  return result;
}

void Cell::run(const std::function<void(const std::string& name)>& begins,
               const std::function<void(const PhaseResult&)>& ended) {
  bool as_planned = true, sound = true;
  for (const std::string& name : phase_names()) {
    const bool ends = name == "end" && sound && training_.running();
    if (!as_planned && !ends) continue;
    begins(name);
    const PhaseResult result = phase(name);
    ended(result);
    sound = result.sound;
    as_planned = as_planned && sound && (result.cut.empty() || name == "steady");
  }
}

}  // namespace elasticrun::bench
