// Which plan a world gets, and when its members should have another one (supervisor.hpp).
#include <algorithm>

#include "job/supervisor.hpp"

namespace elasticrun::job {

// Those of one host are alike where nothing is said of its type.
std::vector<autoscaler::Member> Supervisor::with_types(
    const std::vector<wire::Member>& members) const {
  std::vector<autoscaler::Member> typed;
  for (const wire::Member& member : members) {
    const std::string type = wiring_.host_type ? wiring_.host_type(member.host) : "";
    typed.push_back({member.worker, type.empty() ? wiring_.host_name(member.host) : type});
  }
  return typed;
}

// A program with a loop of its own cannot be told to compute nothing.
bool Supervisor::needs_keeper() const { return poison_.suspected() && work_.left().has_value(); }

wire::BatchPlan Supervisor::plan_for(const std::vector<wire::Member>& members) const {
  const auto size = static_cast<int>(members.size());
  const std::int64_t global_batch = scaler_.plan(size, {}).global_batch;
  auto plan = scaler_.plan(size, shares_.weights(global_batch, with_types(members)));
  wire::BatchPlan batch{.global_batch = plan.global_batch,
                        .micro_batch = plan.micro_batch,
                        .weights = std::move(plan.weights),
                        .lr_factor = plan.lr_factor,
                        .noise_base = plan.noise_base,
                        .adascale = plan.adascale};
  if (needs_keeper() && size > 1) {
    const auto holder = std::ranges::find(members, true, &wire::Member::holds_state);
    batch.keeper = static_cast<std::int32_t>(holder - members.begin()) % size;
    if (batch.weights.empty()) batch.weights.assign(members.size(), 1);
    batch.weights[static_cast<std::size_t>(batch.keeper)] = 0;
  }
  return batch;
}

// Not while anything else is under way, nor while a worker may turn out to be one to replace.
std::optional<std::string> Supervisor::better_plan(Time now) {
  if (!membership_.running() || unsettled_) return {};
  const auto members = membership_.members();
  if (!membership_.is_training(members.front())) return {};
  if (has_keeper_ && !needs_keeper()) return "the step that had killed workers is done";
  // Only what a policy has chosen: what workers say of their batch may be many things.
  const auto size = static_cast<int>(members.size());
  if (target_batch_ > 0 && scaler_.plan(size, {}).global_batch != work_.global_batch())
    return move_reason_.empty() ? "another batch" : move_reason_;
  const bool replaces =
      spec_.stragglers == StragglerAction::replace && pool_.has_substitute(target_, now);
  if (replaces && stragglers_.wake_at() != never) return {};
  return shares_.better(now);
}

}  // namespace elasticrun::job
