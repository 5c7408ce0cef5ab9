#include "tests/bench/control_plane/training.hpp"

#include <algorithm>
#include <utility>

#include "worker/core/member.hpp"
#include "worker/core/neighbours.hpp"

namespace elasticrun::bench {
namespace {

constexpr Duration step_time = std::chrono::milliseconds(100);
constexpr Duration transfer_time = std::chrono::milliseconds(20);
constexpr Duration death_seen = std::chrono::milliseconds(1);
constexpr std::uint64_t state_bytes = 100u << 20;
constexpr std::size_t complaints_max = 16;  // the most that the library sends

}  // namespace

StepId Training::step() const {
  return since_ ? StepId(base_.value + (queue_.now() - *since_) / step_time) : base_;
}

void Training::stand() {
  base_ = step();
  since_.reset();
}

Generation Training::generation_of(WorkerId worker) const {
  const bool steps = running_ && running_->entered && running_->ranks.contains(worker);
  return steps ? running_->generation : Generation();
}

void Training::prepare(const wire::World& world) {
  if (next_ && next_->generation == world.generation) return;
  next_ = World{.generation = world.generation};
  for (const wire::Member& member : world.members) {
    next_->ranks.emplace(member.worker, static_cast<int>(next_->members.size()));
    next_->members.push_back(member.worker);
  }
  next_->transfer = worker::core::sides_of_transfer(worker::core::holders(world));
  if (running_)
    next_->leavers = static_cast<std::size_t>(std::ranges::count_if(
        running_->members, [&](WorkerId w) { return !next_->ranks.contains(w); }));
}

std::vector<std::int32_t> Training::needs_in_next(WorkerId worker) const {
  const int size = static_cast<int>(next_->members.size());
  if (worker::core::is_full_mesh(size)) return {};
  return worker::core::neighbours(next_->ranks.at(worker), size, next_->transfer);
}

// In a planned change the members switch at the end of the step in which the last one gets its Go.
void Training::go(const wire::Go& message) {
  if (!next_ || next_->generation != message.generation) return;
  if (++next_->told < next_->members.size() + next_->leavers) return;
  Duration until_switch{};
  if (since_) until_switch = step_time - (queue_.now() - *since_) % step_time;
  queue_.after(until_switch + transfer_time, [this, g = message.generation] { enter(g); });
}

void Training::enter(Generation generation) {
  if (!next_ || next_->generation != generation) return;
  stand();
  const bool newborn = !std::exchange(born_, true);
  running_ = std::exchange(next_, std::nullopt);
  running_->entered = true;
  since_ = queue_.now();
  const wire::Entered report{.generation = generation,
                             .step = base_,
                             .idle_ns = newborn ? -1 : transfer_time.count(),
                             .transfer_ns = transfer_time.count(),
                             .transfer_bytes = state_bytes};
  for (const WorkerId worker : running_->members) handlers_.entered(worker, report);
  queue_.after(step_time, [this, generation] { commit(generation); });
}

void Training::commit(Generation generation) {
  if (!running_ || running_->generation != generation || !since_) return;
  running_->committed = true;
  for (const WorkerId worker : running_->members) handlers_.committed(worker, {generation, step()});
}

void Training::cancel(Generation generation) {
  if (next_ && next_->generation == generation) next_.reset();
}

void Training::abort(Generation up_to) {
  if (next_ && next_->generation <= up_to) next_.reset();
  if (!running_ || running_->generation > up_to) return;
  stand();
  running_.reset();
}

void Training::die(const std::vector<WorkerId>& dead) {
  if (!running_) return;
  wire::Broken message{.generation = running_->generation,
                       .reason = "the reduction broke: [10.1.2.3]:41234: Connection reset by peer"};
  for (const WorkerId worker : dead)
    if (running_->ranks.contains(worker) && message.complaints.size() < complaints_max)
      message.complaints.push_back(
          {.about = worker, .hung_up = true, .reason = "10.1.2.3:41234: connection reset by peer"});
  if (message.complaints.empty()) return;
  stand();
  queue_.after(death_seen, [this, message] {
    if (!running_ || running_->generation != message.generation) return;
    const std::vector<WorkerId> members = running_->members;
    for (const WorkerId worker : members) handlers_.broken(worker, message);
  });
}

void Training::finish() {
  stand();
  for (const WorkerId worker : running_->members) handlers_.done(worker, {1, base_});
}

}  // namespace elasticrun::bench
