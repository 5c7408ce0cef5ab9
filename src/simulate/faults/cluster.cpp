// See cluster.hpp.
#include "simulate/faults/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "job/core/workers/staffing.hpp"
#include "save/names.hpp"
#include "wire/codec.hpp"

namespace elasticrun::simulate::faults {
namespace {

// A job that does not end within this time after the last fault counts as hanging. It is longer
// than every deadline and every pause of a slot that can occur.
constexpr Duration patience = std::chrono::minutes(20);
constexpr std::uint64_t events_max = 3'000'000;

}  // namespace

Cluster::Cluster(const Scene& scene, Tell tell)
    : scene_(scene),
      tell_(std::move(tell)),
      rng_(mix(scene.dice)),
      plane_(queue_, rng_),
      invariants_(scene.samples, scene.epochs, scene.train_calls, scene.spec.limits),
      stepping_(scene.only_newcomers),
      stage_{scene_, queue_, rng_, plane_, invariants_, stepping_, {}, {}, {}, {}} {
  if (scene_.only_leavers) invariants_.only_leavers();
  job_ = std::move(*job::Job::make(scene_.spec));
  job::HostsMet met;
  for (int number = 1; number <= scene_.hosts; ++number) {
    const HostId host(static_cast<std::uint32_t>(number));
    met.hosts.push_back({host, fmt::format("host{}", number)});
    for (int slot = 0; slot < scene_.slots_per_host; ++slot) all_slots_.push_back({host, slot});
  }
  (void)job_->step(met, queue_.now());
  file_slots_ = all_slots_;
}

Outcome Cluster::run() {
  begin_ = queue_.now();
  try {
    tell_slots();
    for (const Fault& fault : scene_.faults)
      queue_.after(fault.at, [this, &fault] { befall(fault); });
    queue_.after(scene_.faults_until, [this] { heal_all(); });
    look_around();
    const Time limit = begin_ + scene_.faults_until + patience;
    while (!over_at_ || queue_.now() < *over_at_) {
      if (!queue_.run_next()) break;
      if (++outcome_.events > events_max || queue_.now() > limit)
        throw Violation("nothing hangs",
                        fmt::format("the job is {} after {} and {} events", to_text(job_->phase()),
                                    to_text(queue_.now() - begin_), outcome_.events));
    }
    if (!over_at_) throw Violation("nothing hangs", "nothing is due any more, and no end");
    invariants_.after_the_end(processes_left());
  } catch (const Violation& violation) {
    outcome_.broken_rule = violation.rule;
    outcome_.broken_text = violation.what();
  }
  return outcome_;
}

// ---------------------------------------------------------------- the controller's driver

void Cluster::feed(const job::JobEvent& event) {
  if (!controller_alive_) return;
  if (stands_still_) return missed_.push_back(event);
  const bool ended = !job_->end_reason().empty();
  const bool stopping = is_ending(job_->phase());
  const auto actions = job_->step(event, queue_.now());
  const bool lost = !ended && job_->end_reason().find("state lost") != std::string::npos;
  const auto holder = lost ? untouched_holder() : std::nullopt;
  for (const auto& action : actions) {
    invariants_.controller_says(action, stopping);
    std::visit([this](const auto& a) { act(a); }, action);
  }
  if (lost) invariants_.state_lost(holder, sealing_.has_value());
  if (!controller_alive_) return;
  const bool idle_tick = std::holds_alternative<job::Tick>(event) && queue_.now() == last_tick_;
  idle_ticks_ = idle_tick ? idle_ticks_ + 1 : 0;
  last_tick_ = queue_.now();
  invariants_.woken_again(idle_ticks_);
  arm();
}

void Cluster::arm() {
  const Time at = std::max(job_->wake_at(queue_.now()), queue_.now());
  if (at == never || at >= armed_) return;
  armed_ = at;
  queue_.at(at, [this, at] {
    if (armed_ != at) return;
    armed_ = never;
    feed(job::Tick{});
  });
}

void Cluster::tell_slots() {
  job::SlotsChanged changed{file_slots_, {}, {}};
  for (const auto& slot : joined_slots_) changed.slots.push_back(slot);
  std::erase_if(changed.slots, [&](auto slot) { return given_back_.contains(slot.host); });
  std::map<HostId, int> by_host;
  for (const auto& slot : changed.slots) ++by_host[slot.host];
  for (const auto& [host, count] : by_host) changed.slots_by_host.push_back(count);
  feed(changed);
}

void Cluster::act(const job::StartAgent& action) {
  const HostId host = action.host;
  auto& runs = agents_[host];
  const bool unreachable = !runs.empty() && runs.back()->alive() && !runs.back()->reachable();
  const bool ours = host.value <= static_cast<std::uint64_t>(scene_.hosts);
  if (!ours || unreachable || rng_.chance(0.01)) {
    queue_.after(stage_.between_us(500, 50'000), [this, host] {
      feed(job::HostDown{host, "cannot be reached"});
    });
    return;
  }
  make_agent(host)->begin();
}

std::shared_ptr<Agent> Cluster::make_agent(HostId host) {
  const bool joins = host.value > static_cast<std::uint64_t>(scene_.hosts);
  Agent::Handlers handlers;
  handlers.up = [this, host, joins] {
    feed(job::HostUp{host});
    if (joins) tell_slots();
  };
  handlers.down = [this, host, joins](const std::string& reason) {
    if (joins) joined_host_is_gone(host);
    feed(job::HostDown{host, reason});
  };
  handlers.away = [this, host] { feed(job::HostAway{host, "the connection was reset"}); };
  handlers.back = [this, host] { feed(job::HostBack{host}); };
  handlers.message = [this](WorkerId worker, wire::FromWorker message) {
    if (tell_ && !std::holds_alternative<wire::Sample>(message))
      told(fmt::format("  from worker {}: {}", worker.value, wire::encode(message)));
    if (const auto* broken = std::get_if<wire::Broken>(&message))
      for (const auto& complaint : broken->complaints)
        if (const job::workers::Worker* peer = job_->workers().find(complaint.about))
          accused_at_[peer->slot.host] = queue_.now();
    feed(job::FromWorker{worker, std::move(message)});
  };
  handlers.report = [this, host](wire::agent::FromAgent report) {
    feed(job::FromHost{host, std::move(report)});
  };
  return agents_[host].emplace_back(std::make_shared<Agent>(stage_, std::move(handlers)));
}

// Kills an agent as an executor does: closes the connection, kills the process where it can be
// reached, and reports its end afterwards.
void Cluster::act(const job::KillAgent& action) {
  auto& runs = agents_[action.host];
  if (runs.empty()) return;
  runs.back()->close(launcher::agent::GivenUp{"its host was given up"});
  runs.back()->kill();
  queue_.after(stage_.between_us(100, 5000), [this, host = action.host] {
    joined_host_is_gone(host);
    feed(job::HostDown{host, "the agent was killed"});
  });
}

void Cluster::act(const job::StartWorker& action) {
  auto& runs = agents_[action.slot.host];
  if (!runs.empty())
    runs.back()->order(
        wire::agent::StartWorker{action.worker, action.slot.index, scene_.spec.argv, {}, {}});
}

void Cluster::act(const job::Order& action) {
  auto& runs = agents_[action.host];
  if (const auto* stop = std::get_if<wire::agent::StopWorker>(&action.order)) {
    if (stop->signal == SIGKILL && job_->end_reason().empty()) see_kill(stop->worker);
    touched_.insert(stop->worker);
  }
  if (!runs.empty()) runs.back()->order(action.order);
}

void Cluster::act(const job::Deliver& action) {
  for (const auto& [host, workers] : action.to) {
    auto& runs = agents_[host];
    for (const WorkerId worker : workers) {
      if (tell_)
        told(fmt::format("  to worker {}: {}", worker.value, wire::encode(action.message)));
      if (!runs.empty()) runs.back()->deliver(worker, action.message);
    }
  }
}

void Cluster::act(const job::Record& action) {
  if (action.event.name == "world_formed") ++outcome_.worlds;
  if (tell_) told(job::report::to_json(action.event, ""));
}

void Cluster::act(const job::Log& action) { told(action.text); }

// The hosts are taken back, or not.
void Cluster::act(const job::GiveBack& action) {
  given_back_.insert(action.hosts.begin(), action.hosts.end());
  const bool taken = rng_.chance(0.5);
  queue_.after(Duration::zero(), [this] { tell_slots(); });
  queue_.after(stage_.between_us(1000, 500'000), [this, hosts = action.hosts, taken] {
    if (!taken)
      for (const HostId host : hosts) given_back_.erase(host);
    feed(job::GiveBack::Answer{hosts, taken ? Result<void>() : Error{"not now"}});
    tell_slots();
  });
}

// Makes a save whole, or the file system fails.
void Cluster::act(const job::SealSave& action) {
  const std::string& folder = scene_.spec.saving.folder;
  Result<std::string> path = Error{"the disk is full"};
  if (!rng_.chance(0.05)) {
    path = ok(save::whole_of(folder, action.number));
    stage_.saves[*path] = stage_.drafts.at(save::draft_of(folder, action.number));
    sealing_ = action.number;
  }
  queue_.after(stage_.between_us(100, 50'000),
               [this, sealed = job::SealSave::Answer{action.number, path, action.manifest}] {
                 if (sealing_ == sealed.number) sealing_.reset();
                 feed(sealed);
               });
}

void Cluster::act(const job::DropSave& action) {
  if (sealing_ == action.number) sealing_.reset();
}

void Cluster::act(const job::Finish& action) {
  told(fmt::format("the job ends with {}: {}", action.exit_code, action.last_words));
  outcome_.exit_code = action.exit_code;
  outcome_.last_words = action.last_words;
  invariants_.finished(action.exit_code, action.last_words, interrupted_, somebody_exited_,
                       finished_models());
  invariants_.stopped(action.exit_code, stage_.saves.size());
  controller_alive_ = false;
  for (const auto& [host, runs] : agents_)
    for (const auto& agent : runs) agent->close(launcher::agent::ControllerLost{"the job is over"});
  watch_for_the_end();
  queue_.after(stage_.between_us(1, 1000),
               [this] { invariants_.after_finish(job_->step(job::Tick{}, queue_.now()).size()); });
}

// When every deadline of a host has passed, nothing of the job may be left on it. An agent waits
// 5 s for a process that cannot be killed.
void Cluster::watch_for_the_end() {
  const auto& d = scene_.spec.deadlines;
  const Time healed = std::max(queue_.now(), begin_ + scene_.faults_until);
  over_at_ = healed + d.lease + d.orphan_grace + d.grace + std::chrono::seconds(6);
  queue_.at(*over_at_, [] {});
}

// ---------------------------------------------------------------- what is true in the processes

// Whether the kernel keeps a worker of which nobody can know that it is dead. Its world may still
// step, as far as the others can tell.
bool Cluster::an_end_is_unknown() const {
  for (const auto& [host, runs] : agents_)
    for (const auto& run : runs)
      for (const auto& [id, process] : run->workers()) {
        const job::workers::Worker* const worker = job_->workers().find(id);
        const bool told = worker && worker->is(job::workers::WorkerState::dying);
        if (process->kept() && !told) return true;
      }
  return false;
}

// Checks, now and regularly from then on, that the workers that could step do so.
void Cluster::look_around() {
  if (!controller_alive_ || over_at_) return;
  const auto& membership = job_->membership();
  const job::workers::Slots& slots = job_->slots();
  const job::workers::Workers& workers = job_->workers();
  const Time now = queue_.now();
  const bool trains = job_->phase() < job::course::Phase::trained && membership.ever_formed();
  int well = 0;
  bool faulty = false;  // a worker that hangs; if it steps but cannot form a group, none can join
  std::set<WorkerId> outside;
  const auto wanted =
      job::workers::wanted_slots(slots, workers, job_->target(), now, membership.members());
  for (const job::SlotId slot : wanted) {
    const auto id = workers.in(slot);
    const auto runs = agents_.find(slot.host);
    if (!id || runs == agents_.end() || runs->second.empty()) continue;
    const auto process = runs->second.back()->workers().find(*id);
    if (process == runs->second.back()->workers().end()) continue;
    faulty |= process->second->hangs();
    if (!process->second->in_train() || !is_well(*runs->second.back(), slot.host, *process->second))
      continue;
    ++well;
    const bool welcome =
        workers.find(*id)->is(job::workers::WorkerState::ready) && !slots.avoided(slot, now);
    if (welcome && !membership.is_member(*id)) outside.insert(*id);
  }
  const bool excused = an_end_is_unknown();
  if (faulty || excused) outside.clear();
  // Needs two workers: after a step that kills workers, the last one left keeps the state and waits
  // for another.
  const bool could = trains && !excused && well >= std::max(scene_.spec.limits.min, 2);
  stepping_.look(could, outside, now);
  queue_.after(std::chrono::milliseconds(50), [this] { look_around(); });
}

void Cluster::see_kill(WorkerId worker) {
  const job::workers::Worker* const known = job_->workers().find(worker);
  if (!known || tainted_.contains(worker) || touched_.contains(worker)) return;
  bool well = false;
  std::optional<WorkerId> faulty;
  for (const auto& [host, runs] : agents_)
    for (const auto& agent : runs)
      for (const auto& [id, process] : agent->workers()) {
        if (id == worker) well = is_well(*agent, host, *process);
        const bool there = process->alive() &&
                           (process->hangs() || process->frozen() || plane_.links().touches(host));
        if (there && id != worker && job_->workers().find(id)) faulty = id;
      }
  if (well) invariants_.killed(worker, faulty);
}

std::optional<WorkerId> Cluster::untouched_holder() const {
  for (const auto& [host, runs] : agents_) {
    for (const auto& agent : runs) {
      if (!agent->reachable()) continue;
      for (const auto& [id, process] : agent->workers()) {
        const bool well = process->alive() && !process->frozen() && process->in_train();
        // A host that has lost its control connection and is accused by workers counts as dead.
        const auto accused = accused_at_.find(host);
        const bool seems_dead = agent->away() && accused != accused_at_.end() &&
                                queue_.now() - accused->second < rendezvous::Suspects::patience;
        if (well && !seems_dead && !touched_.contains(id) &&
            process->member().committed() > StepId(0) &&
            invariants_.is_newest(process->member().committed()))
          return id;
      }
    }
  }
  return std::nullopt;
}

std::vector<Model> Cluster::finished_models() const {
  std::vector<Model> models;
  for (const auto& [host, runs] : agents_)
    for (const auto& agent : runs)
      for (const auto& [id, process] : agent->workers())
        if (process->finished()) models.push_back(process->model());
  return models;
}

std::size_t Cluster::processes_left() const {
  std::size_t count = 0;
  for (const auto& [host, runs] : agents_)
    for (const auto& agent : runs) {
      count += agent->alive();
      for (const auto& [id, process] : agent->workers()) count += process->alive();
    }
  return count;
}

}  // namespace elasticrun::simulate::faults
