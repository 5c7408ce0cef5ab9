// See agent_channel.hpp. The member sends nothing before the program calls train, so no action
// needs the connection before it exists.
#include "worker/control/agent_channel.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace elasticrun::worker::control {

namespace {

// A reduction longer than this (1 s) is long enough to check its connections for lost links.
constexpr std::int64_t nanoseconds_worth_a_look = 1'000'000'000;

// A handler of the group builder that passes its event on to the member, under the lock.
template <class... Arguments>
auto told(MemberLock& member_lock, void (core::Member::*what)(Generation, Arguments...)) {
  return [&member_lock, what](Generation generation, Arguments... arguments) {
    member_lock.update([&](core::Member& member) {
      (member.*what)(generation, std::forward<Arguments>(arguments)...);
    });
  };
}

}  // namespace

AgentChannel::AgentChannel(std::unique_ptr<collective::DataPlane> plane, MemberLock& member_lock)
    : builder_(std::move(plane), {.published = told(member_lock, &core::Member::published),
                                  .formed = told(member_lock, &core::Member::formed),
                                  .failed = told(member_lock, &core::Member::form_failed)}) {}

// The builder's thread uses the connection, and the control thread the builder's queue: the
// builder's thread ends first, then the connection with the control thread.
AgentChannel::~AgentChannel() {
  builder_.stop();
  connection_.reset();
}

Result<std::unique_ptr<AgentChannel>> AgentChannel::open(
    const ConnectionOptions& options, std::unique_ptr<collective::DataPlane> plane,
    MemberLock& member_lock, StepMeter& meter) {
  std::unique_ptr<AgentChannel> channel(new AgentChannel(std::move(plane), member_lock));
  member_lock.attach(*channel);
  // The connection, which asks for samples, ends before the channel.
  const auto take_sample = [&member_lock, &meter, interval = options.sample_interval,
                            self = channel.get()]() -> std::optional<wire::Sample> {
    wire::Sample sample = meter.take(std::chrono::steady_clock::now(), interval);
    if (sample.phase == "reduce" && sample.waiting_ns > nanoseconds_worth_a_look)
      sample.lost_link = std::ranges::any_of(self->held_up(), [](const collective::HeldUp& group) {
        return !group.lost_links.empty();
      });
    const bool there = member_lock.update([&](core::Member& member) {
      sample.step = member.committed();
      if (member.in_world()) sample.generation = member.world().generation;
      return member.task() != core::Task::evicted;
    });
    if (!there) return std::nullopt;
    return sample;
  };
  auto connection = Connection::open(
      options, {.on_message =
                    [&member_lock](const wire::ToWorker& message) { member_lock.receive(message); },
                .on_lost = [&member_lock](const std::string& reason) { member_lock.lose(reason); },
                .sample = take_sample});
  if (!connection) return connection.error();
  channel->connection_ = std::move(*connection);
  return channel;
}

void AgentChannel::flush() { connection_->flush(); }

void AgentChannel::carry(core::Member&, core::MemberAction action) {
  if (auto* send = std::get_if<core::Send>(&action))
    return connection_->send(std::move(send->message));
  if (const auto* form = std::get_if<core::FormGroup>(&action)) return builder_.form(form->spec);
  if (auto* connect = std::get_if<core::ConnectGroup>(&action))
    return builder_.connect(connect->generation, std::move(connect->addresses));
  if (const auto* abort = std::get_if<core::AbortGroups>(&action))
    return builder_.abort(abort->up_to);
  if (const auto* drop = std::get_if<core::DropGroup>(&action))
    return builder_.drop(drop->generation);
  if (const auto* close = std::get_if<core::CloseGroups>(&action))
    return builder_.close(close->below);
}

}  // namespace elasticrun::worker::control
