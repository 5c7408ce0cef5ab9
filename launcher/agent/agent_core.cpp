// See agent_core.hpp.
#include "launcher/agent/agent_core.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/exit_code.hpp"

namespace elasticrun::launcher::agent {
namespace {

// Long after a SIGKILL only a process stuck in the kernel can be left; waiting longer for it is
// useless, and the watchdog tries once more.
constexpr Duration kill_patience = std::chrono::seconds(5);
// A signal to all processes of a machine reaches the controller as well, and that decides.
constexpr Duration time_for_controller = std::chrono::seconds(1);
constexpr const char* asked_to_end = "asked to end by a signal";
constexpr std::size_t finished_max = 4096;

bool valid(std::int32_t signal) { return signal > 0 && signal <= 64; }

}  // namespace

AgentCore::AgentCore(const AgentLimits& limits, Time now)
    : limits_(limits),
      lease_ends_(now + limits.lease),
      next_heartbeat_(now + limits.heartbeat),
      last_step_(now) {}

std::vector<AgentAction> AgentCore::step(const AgentEvent& event, Time now) {
  actions_.clear();
  if (ended_) return {};
  const Duration passed = std::min(now - std::exchange(last_step_, now), limits_.heartbeat);
  stood_still_ = now < lease_ends_ ? Duration::zero() : stood_still_ + passed;
  std::visit([&](const auto& e) { on(e, now); }, event);
  deadlines(now);
  return std::exchange(actions_, {});
}

Time AgentCore::wake_at() const {
  if (ended_) return never;
  const bool workers_kept = last_step_ >= lease_ends_;
  Time at =
      std::min({workers_kept ? last_step_ + limits_.heartbeat : lease_ends_, give_up_at_, ask_at_});
  if (controller_ == Controller::connected) at = std::min(at, next_heartbeat_);
  for (const auto& [id, worker] : workers_)
    if (worker.phase == Phase::running) at = std::min(at, worker.kill_at);
  return at;
}

// ---------------------------------------------------------------- orders

void AgentCore::on(const wire::agent::StartWorker& order, Time) {
  if (workers_.contains(order.worker) || finished_.contains(order.worker)) return;
  if (ending_)
    return report(wire::agent::StartFailed{order.worker, exit_code::nothing_started,
                                           "the agent is ending: " + ending_->reason});
  workers_.emplace(order.worker, Worker{});
  actions_.emplace_back(Spawn{order});
}

void AgentCore::on(const wire::agent::StopWorker& order, Time now) {
  const auto it = workers_.find(order.worker);
  if (it == workers_.end()) return;
  stop(*it, valid(order.signal) ? order.signal : SIGTERM, Duration(order.grace_ns), now);
}

void AgentCore::on(const wire::agent::SignalWorker& order, Time) {
  const auto it = workers_.find(order.worker);
  if (it != workers_.end() && valid(order.signal)) send_signal(*it, order.signal);
}

// A controller that has been replaced by one with a higher term must not keep us alive.
void AgentCore::on(const wire::agent::Heartbeat& order, Time now) {
  if (order.term < limits_.term) return;
  limits_.term = order.term;
  if (lease_ends_ == never) return;  // the workers are killed
  const Time sent = std::min(Time(Duration(std::max<std::int64_t>(order.clock_ns, 0))), now);
  lease_ends_ = std::max(lease_ends_, sent + limits_.lease);
}

void AgentCore::on(const wire::agent::Shutdown& order, Time now) {
  if (asked_by_ != 0) host_ends(0, asked_to_end);
  end_with(0, "the controller ended the job", Duration(order.grace_ns), now);
}

// ---------------------------------------------------------------- what happened here

void AgentCore::on(const ProcessStarted& event, Time) {
  const auto it = workers_.find(event.worker);
  if (it == workers_.end() || it->second.phase != Phase::starting) return;
  it->second.phase = Phase::running;
  report(wire::agent::WorkerStarted{event.worker, event.pid});
  for (const std::int32_t signal : std::exchange(it->second.waiting, {})) send_signal(*it, signal);
}

void AgentCore::on(const ProcessFailed& event, Time) {
  if (!workers_.contains(event.worker)) return;
  report(wire::agent::StartFailed{event.worker, event.code, event.reason});
  finish(event.worker);
}

// Not where we kill it: then the controller waits for its end, or the host ends with it. Nor where
// it was asked to end: whoever ends a host asks all of its processes, and perhaps us next.
void AgentCore::on(const ProcessDies& event, Time) {
  const auto it = workers_.find(event.worker);
  if (it == workers_.end() || it->second.phase != Phase::running || host_ends_) return;
  if (event.signal == SIGTERM || event.signal == SIGINT || event.signal == SIGHUP) return;
  report(wire::agent::WorkerDies{event.worker, event.code, event.signal, event.error});
}

void AgentCore::on(const ProcessExited& event, Time) {
  if (!workers_.contains(event.worker)) return;
  report(wire::agent::WorkerExited{event.worker, event.code, event.signal,
                                   host_ends_ ? ending_->reason : std::string(), event.error.text,
                                   event.error.at_ns, event.free_port});
  finish(event.worker);
}

// A stopped controller reads nothing: the kernel ends the connection when its buffers are full. So
// the agent has the time to dial again before it kills its workers.
void AgentCore::on(const ConnectionLost&, Time now) {
  controller_ = Controller::away;
  answers_until_ = now + limits_.lease / 2;
}

void AgentCore::on(const Reconnected&, Time now) {
  controller_ = Controller::connected;
  next_heartbeat_ = now;
}

void AgentCore::on(const GivenUp& event, Time now) {
  controller_ = Controller::gone;
  host_ends(1, "the controller gave this host up: " + event.reason);
  kill_all(now);
}

void AgentCore::on(const ControllerLost& event, Time now) {
  controller_ = Controller::gone;
  end_with(1, "lost the controller: " + event.reason, limits_.orphan_grace, now);
}

// While there is a controller, it decides: workers that end by themselves take the state with them.
void AgentCore::on(const Terminated& event, Time now) {
  if (limits_.signal_means != SignalMeans::host_ends && controller_ != Controller::gone) {
    if (std::exchange(asked_by_, event.signal) == event.signal)
      return;  // the watchdog passes it on
    const bool at_once = limits_.signal_means == SignalMeans::job_stops;
    ask_at_ = at_once ? now : now + time_for_controller;
    return;
  }
  host_ends(0, asked_to_end);
  end_with(0, {}, limits_.orphan_grace, now);
}

void AgentCore::on(const WatchdogLost&, Time now) {
  host_ends(1, "its watchdog was killed");
  kill_all(now);
}

// ---------------------------------------------------------------- helpers

// A second order to stop may shorten the grace time but never prolong it. The same signal is not
// sent twice, because many programs take the second one to mean "at once".
void AgentCore::stop(Workers::value_type& worker, std::int32_t signal, Duration grace, Time now) {
  if (worker.second.phase == Phase::killed) return;
  if (worker.second.phase == Phase::starting) actions_.emplace_back(CallOff{worker.first});
  // Compared this way round, a grace time of centuries cannot overflow.
  if (grace < never - now) worker.second.kill_at = std::min(worker.second.kill_at, now + grace);
  if (signal == SIGKILL) worker.second.kill_at = now;
  if (worker.second.kill_at <= now || worker.second.stop_signal == signal) return;
  worker.second.stop_signal = signal;
  send_signal(worker, signal);
}

void AgentCore::send_signal(Workers::value_type& worker, std::int32_t signal) {
  if (worker.second.phase == Phase::running) {
    actions_.emplace_back(Signal{worker.first, signal});
    return;
  }
  auto& waiting = worker.second.waiting;
  if (worker.second.phase == Phase::starting &&
      std::find(waiting.begin(), waiting.end(), signal) == waiting.end())
    waiting.push_back(signal);
}

void AgentCore::kill(Workers::value_type& worker) {
  if (worker.second.phase == Phase::killed) return;
  worker.second.kill_at = Time::min();
  if (worker.second.phase == Phase::starting) return;  // killed as soon as it has started
  worker.second.phase = Phase::killed;
  actions_.emplace_back(KillTree{worker.first});
}

void AgentCore::kill_all(Time now) {
  for (auto& worker : workers_) {
    if (worker.second.phase == Phase::starting) actions_.emplace_back(CallOff{worker.first});
    kill(worker);
  }
  if (give_up_at_ == never) give_up_at_ = now + kill_patience;
}

void AgentCore::end_with(int exit_code, std::string reason, Duration grace, Time now) {
  if (!ending_) ending_ = EndAgent{exit_code, std::move(reason)};
  for (auto& worker : workers_) stop(worker, SIGTERM, grace, now);
}

// The host ends by our own decision, so what happens to its workers now is no failure of theirs.
void AgentCore::host_ends(int exit_code, std::string reason) {
  if (ending_) return;
  ending_ = EndAgent{exit_code, std::move(reason)};
  host_ends_ = true;
}

void AgentCore::finish(WorkerId worker) {
  workers_.erase(worker);
  finished_.insert(worker);
  if (finished_.size() > finished_max) finished_.erase(finished_.begin());
}

void AgentCore::report(wire::agent::FromAgent message) {
  if (controller_ != Controller::gone) actions_.emplace_back(Report{std::move(message)});
}

// While there is a connection, the controller's machine answers: the kernel ends a connection whose
// other side confirms nothing.
bool AgentCore::keeps_workers(Time now) const {
  const bool answers = controller_ == Controller::connected || now < answers_until_;
  return answers && stood_still_ < limits_.standstill;
}

void AgentCore::deadlines(Time now) {
  if (now >= lease_ends_ && !keeps_workers(now)) {
    const bool was_ending = ending_.has_value();
    host_ends(1, "the controller was silent for " + to_text(limits_.lease + stood_still_));
    ending_->in_silence = !was_ending;
    kill_all(now);
    lease_ends_ = never;
  }
  bool killing = false;
  for (auto& worker : workers_) {
    if (now >= worker.second.kill_at) kill(worker);
    killing = killing || now >= worker.second.kill_at;
  }
  if (ending_ && killing && give_up_at_ == never) give_up_at_ = now + kill_patience;
  if (ending_ && (workers_.empty() || now >= give_up_at_)) {
    ended_ = true;
    actions_.emplace_back(*ending_);
    return;
  }
  if (now >= ask_at_) {
    ask_at_ = never;
    report(wire::agent::StopAsked{asked_by_, limits_.signal_means == SignalMeans::job_stops});
  }
  if (controller_ == Controller::connected && now >= next_heartbeat_) {
    report(wire::agent::Heartbeat{limits_.term, now.time_since_epoch().count()});
    next_heartbeat_ = now + limits_.heartbeat;
  }
}

}  // namespace elasticrun::launcher::agent
