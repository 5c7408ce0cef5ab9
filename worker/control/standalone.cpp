// See standalone.hpp.
#include "worker/control/standalone.hpp"

#include <utility>

namespace elasticrun::worker::control {
namespace {

// Plans as the controller does without --batch, --max-batch and --base-batch: with the program's
// own numbers, and the linear rule for the learning rate.
BatchPlan plan_for(const wire::TrainSpec& train) {
  BatchPlan plan{.global_batch = train.batch};
  if (train.base_batch > 0 && train.batch > 0)
    plan.lr_factor = static_cast<double>(train.batch) / static_cast<double>(train.base_batch);
  return plan;
}

bool same_batch(const BatchPlan& a, const BatchPlan& b) {
  return a.global_batch == b.global_batch && a.lr_factor == b.lr_factor;
}

}  // namespace

void Standalone::carry(core::Member& member, core::MemberAction action) {
  if (const auto* send = std::get_if<core::Send>(&action)) return answer(member, send->message);
  if (const auto* order = std::get_if<core::FormGroup>(&action)) return form(member, *order);
  if (const auto* connect = std::get_if<core::ConnectGroup>(&action)) {
    group_->connect(connect->addresses);
    member.formed(connect->generation, {});
  }
}

void Standalone::answer(core::Member& member, const wire::FromWorker& message) {
  if (const auto* ready = std::get_if<wire::Ready>(&message)) {
    const BatchPlan plan = plan_for(ready->train);
    const bool same = same_batch(plan, world_.plan);
    world_.plan = plan;
    if (!member.in_world()) return prepare(member);
    // Another call of train has another batch: form a new world, as if the old one had broken.
    if (!same) member.receive(wire::Abort{world_.generation, "another batch"});
  } else if (std::holds_alternative<wire::Answer>(message)) {
    prepare(member);
  } else if (const auto* publish = std::get_if<wire::Publish>(&message)) {
    member.receive(wire::Gathered{publish->generation, {publish->value}});
  } else if (const auto* prepared = std::get_if<wire::Prepared>(&message)) {
    member.receive(wire::Go{prepared->generation, true});
  } else if (const auto* done = std::get_if<wire::Done>(&message)) {
    member.receive(wire::Release{done->call});
  } else if (std::holds_alternative<wire::Leave>(message)) {
    member.receive(wire::Dismiss{});
  }
}

void Standalone::prepare(core::Member& member) {
  world_.generation = world_.generation.next();
  world_.members = {{.worker = solo_worker, .host = HostId(1), .holds_state = true}};
  member.receive(wire::Prepare{world_});
}

void Standalone::form(core::Member& member, const core::FormGroup& order) {
  group_ = plane_->create(order.spec);
  member.published(order.spec.generation, group_->publish());
}

}  // namespace elasticrun::worker::control
