// See agent_channel.hpp. Nothing is asked of the member before the program calls train, so the gate
// hears no letter that needs the connection before it is there.
#include "worker/control/agent_channel.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace elasticrun::worker::control {

namespace {

// Connections are looked at when a reduction takes longer than most.
constexpr std::int64_t nanoseconds_worth_a_look = 1'000'000'000;

// Tells the member what has become of a group.
template <class... Arguments>
auto told(Gate& gate, void (core::Member::*what)(Generation, Arguments...)) {
  return [&gate, what](Generation generation, Arguments... arguments) {
    gate.update([&](core::Member& member) {
      (member.*what)(generation, std::forward<Arguments>(arguments)...);
    });
  };
}

}  // namespace

AgentCourier::AgentCourier(std::unique_ptr<collective::DataPlane> plane, Gate& gate)
    : former_(std::move(plane), {.published = told(gate, &core::Member::published),
                                 .formed = told(gate, &core::Member::formed),
                                 .failed = told(gate, &core::Member::form_failed)}) {}

// The background thread uses the connection, and the control thread the queue of the former: first
// the one ends, then the other.
AgentCourier::~AgentCourier() {
  former_.stop();
  connection_.reset();
}

Result<std::unique_ptr<AgentCourier>> AgentCourier::open(
    const ConnectionOptions& options, std::unique_ptr<collective::DataPlane> plane, Gate& gate,
    Meter& meter) {
  std::unique_ptr<AgentCourier> courier(new AgentCourier(std::move(plane), gate));
  gate.attach(*courier);
  // The connection, which asks for samples, ends before the courier.
  const auto take_sample = [&gate, &meter, self = courier.get()]() -> std::optional<wire::Sample> {
    wire::Sample sample = meter.take(std::chrono::steady_clock::now());
    if (sample.phase == "reduce" && sample.waiting_ns > nanoseconds_worth_a_look)
      sample.lost_link = std::ranges::any_of(self->held_up(), [](const collective::HeldUp& group) {
        return !group.lost_links.empty();
      });
    const bool there = gate.update([&](core::Member& member) {
      sample.step = member.committed();
      if (member.in_world()) sample.generation = member.world().generation;
      return member.task() != core::Task::evicted;
    });
    if (!there) return std::nullopt;
    return sample;
  };
  auto connection = Connection::open(
      options, {.on_letter = [&gate](const wire::ToWorker& letter) { gate.receive(letter); },
                .on_lost = [&gate](const std::string& reason) { gate.lose(reason); },
                .sample = take_sample});
  if (!connection) return connection.error();
  courier->connection_ = std::move(*connection);
  return courier;
}

void AgentCourier::carry(core::Member&, core::MemberAction action) {
  if (auto* send = std::get_if<core::Send>(&action))
    return connection_->send(std::move(send->letter));
  if (const auto* form = std::get_if<core::FormGroup>(&action)) return former_.form(form->spec);
  if (auto* connect = std::get_if<core::ConnectGroup>(&action))
    return former_.connect(connect->generation, std::move(connect->addresses));
  if (const auto* abort = std::get_if<core::AbortGroups>(&action))
    return former_.abort(abort->up_to);
  if (const auto* drop = std::get_if<core::DropGroup>(&action))
    return former_.drop(drop->generation);
  if (const auto* close = std::get_if<core::CloseGroups>(&action))
    return former_.close(close->below);
}

}  // namespace elasticrun::worker::control
