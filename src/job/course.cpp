// The course of the job as membership tells it (supervisor.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <limits>

#include "base/error.hpp"
#include "job/supervisor.hpp"

namespace elasticrun::job {

void Supervisor::tell(const rendezvous::Event& event, Time now) {
  for (auto& action : membership_.step(event, now))
    std::visit([&](auto& a) { on(a, now); }, action);
}

void Supervisor::on(rendezvous::ToMember& message, Time) {
  if (const Worker* worker = pool_.find(message.to))
    out_.push_back(Deliver{worker->slot.host, message.to, std::move(message.letter)});
}

void Supervisor::on(rendezvous::Fence& fence, Time now) {
  Worker* worker = pool_.find(fence.worker);
  if (!worker || !worker->trouble.empty()) return;
  worker->trouble = fence.reason;
  record("evicted", {{"worker", static_cast<std::int64_t>(fence.worker.value)},
                     {"host", wiring_.host_name(worker->slot.host)},
                     {"reason", fence.reason}});
  stop_worker(fence.worker, SIGKILL, Duration::zero(), now);
}

void Supervisor::on(rendezvous::LeftOut& left, Time now) {
  const Worker* worker = pool_.find(left.worker);
  if (!worker || ending()) return;
  const Duration pause = pool_.leave_out(worker->slot, now);
  record("left_out", {{"worker", static_cast<std::int64_t>(left.worker.value)},
                      {"host", wiring_.host_name(worker->slot.host)},
                      {"pause_s", seconds(pause)},
                      {"reason", left.reason}});
  say(Tone::error,
      fmt::format("{} is left out for {}: {}", name_of(left.worker), to_text(pause), left.reason));
}

void Supervisor::on(rendezvous::BecameReady&, Time) {}  // staff() looks at who is ready

void Supervisor::batch_said(const wire::TrainSpec& train) {
  autoscaler::BatchRule rule = spec_.batch;
  if (rule.batch == 0) rule.batch = train.batch;
  if (rule.base_batch == 0) rule.base_batch = train.base_batch;
  scaler_.batch_rule_changed(rule);
}

void Supervisor::on(rendezvous::WorldFormed& formed, Time now) {
  happen(Happening::world_formed);
  standstill_.clear();
  left_ = failed_ = counted_world_ = false;
  short_since_ = never;
  const int size = static_cast<int>(formed.world.members.size());
  ++worlds_;
  if (!story_.empty()) ++(formed.planned ? planned_ : forced_);
  story_.push_back({size, formed.step, formed.world.reason});
  if (story_.size() > story_max) story_.pop_front();

  ranks_.clear();
  std::vector<WorkerId> workers;
  for (const auto& member : formed.world.members) {
    const auto rank = static_cast<std::int32_t>(workers.size());
    workers.push_back(member.worker);
    ranks_[member.worker] = rank;
    out_.push_back(Ranked{member.worker, rank});
  }
  const auto& plan = formed.world.plan;
  stragglers_.world_changed(formed.world.generation, workers);
  scaler_.world_changed(formed.world.generation, size, plan.global_batch, now);
  // Shares of a world in which one computes nothing say nothing of its speed.
  if (plan.keeper < 0 &&
      shares_.world_changed(formed.world.generation, with_types(formed.world.members),
                            plan.global_batch, plan.weights))
    scaler_.shares_changed();
  work_.world_changed(formed.step, plan.global_batch);
  progress(formed.step);
  poison_.world_formed(formed.step);
  has_keeper_ = plan.keeper >= 0;
  record_world(formed);
  say_world(formed, now);
}

void Supervisor::record_world(const rendezvous::WorldFormed& formed) {
  constexpr double not_known = std::numeric_limits<double>::quiet_NaN();
  const auto& plan = formed.world.plan;
  std::vector<std::string> hosts;
  for (const auto& member : formed.world.members) {
    const std::string host = wiring_.host_name(member.host);
    if (std::ranges::count(hosts, host) == 0) hosts.push_back(host);
  }
  std::vector<std::pair<std::string, Value>> fields{
      {"generation", static_cast<std::int64_t>(formed.world.generation.value)},
      {"size", static_cast<std::int64_t>(formed.world.members.size())},
      {"hosts", hosts},
      {"reason", formed.world.reason},
      {"planned", formed.planned},
      {"step", formed.step.value},
      {"idle_ms", formed.idle_ns < 0 ? not_known : static_cast<double>(formed.idle_ns) / 1e6},
      {"prepare_ms", milliseconds(formed.prepare)},
      {"state_bytes", static_cast<std::int64_t>(formed.transfer_bytes)},
      {"state_ms", static_cast<double>(formed.transfer_ns) / 1e6},
      {"global_batch", plan.global_batch},
      {"lr_factor", plan.adascale ? not_known : plan.lr_factor}};
  if (!formed.way.empty()) fields.emplace_back("group", formed.way);
  if (!plan.weights.empty())
    fields.emplace_back("shares",
                        std::vector<std::int64_t>(plan.weights.begin(), plan.weights.end()));
  record("world_formed", std::move(fields));
}

void Supervisor::say_world(const rendezvous::WorldFormed& formed, Time now) {
  // What was said before, with the decision or the last world, is not said again.
  const std::string why = formed.world.reason == told_ ? "" : ": " + formed.world.reason;
  const std::string backend = formed.way.substr(0, formed.way.find(' '));
  const bool other = !backend.empty() && backend != std::exchange(backend_, backend);
  const std::string over = other ? " over " + backend : "";
  // There is none before the first step.
  const std::string idle =
      formed.idle_ns < 0
          ? ""
          : fmt::format(", idle {:.0f} ms", static_cast<double>(formed.idle_ns) / 1e6);
  const std::size_t size = formed.world.members.size();
  const std::int64_t batch = formed.world.plan.global_batch;  // 0: the program's own affair
  if (formed.strangers > 0)
    say(Tone::detail,
        fmt::format("{} strangers dialled workers and were turned away", formed.strangers));
  const std::string samples = batch > 0 ? fmt::format(", global batch {}", batch) : "";
  tell_troubles(now, true);  // the cause first
  say(Tone::info, fmt::format("world {}: {} worker{}{}{}, from step {}{}{}", worlds_, size,
                              size == 1 ? "" : "s", over, samples, formed.step.value, idle, why));
}

void Supervisor::on(rendezvous::ChangeEnded& ended, Time now) {
  if (!change_ || change_->id != ended.id) return;
  change_.reset();
  refused_changes_ = ended.done ? 0 : refused_changes_ + 1;
  if (ended.done) return;
  const Duration pause = std::chrono::milliseconds(100 << std::min(refused_changes_ - 1, 6));
  change_not_before_ = now + pause;
  say(Tone::info, "change dropped: " + ended.reason);
}

void Supervisor::on(rendezvous::WorldCommitted& committed, Time now) {
  progress(committed.step);
  ends_.survived();
  for (const WorkerId id : committed.dismissed)
    if (Worker* worker = pool_.find(id)) {
      worker->expected = true;
      worker->stop_at = now + spec_.deadlines.grace;
      if (pool_.quarantined(worker->slot, now))
        record("evicted", {{"worker", static_cast<std::int64_t>(id.value)},
                           {"host", wiring_.host_name(worker->slot.host)},
                           {"reason", "slower than the others"}});
    }
}

void Supervisor::on(rendezvous::Trained&, Time) {
  happen(Happening::trained);
  say(Tone::detail, "trained: " + steps_made());
}

void Supervisor::on(rendezvous::WorkerLeft& left, Time now) {
  Worker* worker = pool_.find(left.worker);
  if (!worker) return;
  say(Tone::info, fmt::format("{} left: {}", name_of(left.worker), left.reason));
  worker->expected = true;
  worker->stop_at = now + spec_.deadlines.grace;
  pool_.retire(worker->slot);
  left_ = true;
}

void Supervisor::on(rendezvous::WorldBroken& broken, Time) {
  happen(Happening::world_broken);
  record("change_started", {{"generation", static_cast<std::int64_t>(broken.generation.value)},
                            {"planned", false},
                            {"reason", broken.reason}});
}

void Supervisor::on(rendezvous::BelowMinimum& below, Time now) {
  if (below.have == 0 && ended_by_mistake("", now)) return;
  happen(Happening::below_minimum);
  if (short_since_ == never) short_since_ = now;
  const std::string patience = to_text(spec_.deadlines.minimum_timeout);
  say(Tone::error,
      needs_keeper() && below.have >= spec_.limits.min
          ? fmt::format("one worker is left and keeps the state: its step is repeated with another "
                        "one, which is waited for up to {}",
                        patience)
          : fmt::format("{} of at least {} workers are left; waiting up to {} for more", below.have,
                        below.need, patience));
}

void Supervisor::on(rendezvous::StateLost& lost, Time now) {
  // A program with a loop of its own ends so: one after the other closes its job.
  if (left_ && !failed_) return happen(Happening::trained);
  if (ended_by_mistake(": state lost", now)) return;
  const std::string& why = standstill_.empty() ? lost.reason : standstill_;
  end(exit_code::below_minimum,
      fmt::format("state lost: {}, and nobody is left who holds the state", why), now);
}

}  // namespace elasticrun::job
