// See world_session.hpp. An abort may come between reading the member's state and acting on it, so
// both are done in one update of the member.
#include "worker/control/world_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "base/boot_clock.hpp"
#include "base/check.hpp"
#include "worker/state/saved_state.hpp"
#include "worker/state/state_transfer.hpp"

namespace elasticrun::worker::control {

void WorldSession::ready(wire::TrainSpec train) {
  train.state_bytes = table_.registered_bytes();
  train.state_layout = table_.layout_hash();
  train.save_trouble = options_.save_trouble;
  member_lock_.update([&](core::Member& member) { member.ready(train); });
}

bool WorldSession::await() {
  for (;;) {
    const std::optional<core::Task> task = member_lock_.wait();
    if (!task)
      throw Stop(
          ELASTICRUN_FAILED,
          fmt::format("the agent is gone ({}); elasticrun ends this process", member_lock_.lost()));
    switch (*task) {
      case core::Task::evicted:
        let_go();
        throw Stop(ELASTICRUN_EVICTED,
                   member_lock_.update([](core::Member& member) { return member.dismissed(); }));
      case core::Task::released:
        return false;
      case core::Task::step:
        return true;
      case core::Task::save:
        (void)save_if_agreed();
        break;
      case core::Task::enter:
        enter();
        break;
      case core::Task::wait:
        break;
    }
  }
}

void WorldSession::done(std::int64_t call) {
  const bool accepted =
      member_lock_.update([call](core::Member& member) { return member.done(call); });
  ER_CHECK(accepted, "training ends inside apply");
}

void WorldSession::let_go() {
  group_ = nullptr;
  if (borrowed_ != Generation()) channel_.release(std::exchange(borrowed_, Generation()));
}

void WorldSession::await_gpu() const {
  if (table_.gpu()) table_.gpu()->wait();
}

bool WorldSession::begin_compute() {
  return member_lock_.update([](core::Member& member) { return member.begin_compute(boot_now()); });
}

bool WorldSession::may_apply(const core::Votes& votes) {
  return member_lock_.update(
      [&](core::Member& member) { return member.may_apply(votes, boot_now()); });
}

void WorldSession::collective_ended() {
  member_lock_.update([](core::Member& member) { member.collective_ended(); });
}

void WorldSession::broken(const collective::GroupBroken& error) {
  if (table_.gpu() && !table_.gpu()->health()) fail(ELASTICRUN_FAILED, error.what());
  member_lock_.update([&](core::Member& member) { member.broken(error); });
  let_go();
}

void WorldSession::fail(elasticrun_status status, const std::string& why) {
  member_lock_.update([&](core::Member& member) { member.fail(why); });
  let_go();
  throw Stop(status, why);
}

// A rank that left first would break the group under the others while they are still finding out,
// and they would train on without it.
void WorldSession::fail_together(const std::string& why) {
  try {
    group()->barrier();
  } catch (const collective::GroupBroken&) {  // another rank knew before this one, and has left
  }
  fail(ELASTICRUN_MISUSE, why);
}

void WorldSession::differ(bool has_steps, int with_steps, const std::string& why) {
  if (with_steps == 0 || with_steps == size()) fail_together(why);
  // The newcomer says that it leaves: to die in a step would be blamed on the step.
  if (!has_steps) leave(ELASTICRUN_MISUSE, why);
  throw collective::GroupBroken(why);
}

void WorldSession::leave(elasticrun_status status, const std::string& why) {
  member_lock_.update([&](core::Member& member) { member.leave(why); });
  channel_.flush();
  let_go();
  throw Stop(status, why);
}

bool WorldSession::save_if_agreed() {
  const auto order = member_lock_.update([](core::Member& member) { return member.take_save(); });
  if (!order) return false;
  saver_.save(*order, progress);
  meter_.enter(StepMeter::Phase::idle, now());
  return order->save.stop;
}

// ---------------------------------------------------------------- entering a world

void WorldSession::enter() {
  const auto entry = member_lock_.update([](core::Member& member) -> std::optional<Entry> {
    if (member.task() != core::Task::enter) return std::nullopt;
    member.begin_transfer();
    return Entry{.world = member.world(),
                 .rank = member.rank(),
                 .in_place = member.may_receive_in_place(),
                 .newcomer = member.committed() == no_state};
  });
  if (!entry) return;
  let_go();
  meter_.enter(StepMeter::Phase::transfer, now());
  collective::Group* const group = channel_.acquire(entry->world.generation);
  if (!group) return;  // it was dropped a moment ago, and the member knows
  borrowed_ = entry->world.generation;
  const std::optional<wire::Entered> report = exchange(*entry, *group);
  if (!report) return let_go();
  group_ = group;
  world_ = entry->world;
  rank_ = entry->rank.value;
  member_lock_.update([&](core::Member& member) { member.entered(*report); });
}

// Returns nullopt when this world has failed; the state is then what it was before.
std::optional<wire::Entered> WorldSession::exchange(const Entry& entry, collective::Group& group) {
  const bool holder = entry.world.members[static_cast<std::size_t>(entry.rank.value)].holds_state;
  if (entry.newcomer && !entry.world.restore.empty() && !restore(entry)) return std::nullopt;
  state::TransferResult result;
  try {
    state::StateTransfer transfer(group, core::holders(entry.world), table_, &meter_.transferred);
    result = transfer.exchange(encode(progress), !entry.in_place);
    if (!holder) {
      if (!member_lock_.update([](core::Member& member) { return member.may_swap(); }))
        return std::nullopt;
      install(transfer.commit());
    }
  } catch (const collective::GroupBroken& error) {
    broken(error);
    return std::nullopt;
  } catch (const state::StateMismatch& error) {
    // A world that has made steps goes on without a newcomer whose state does not match.
    if (!holder || progress.step == 0) fail(ELASTICRUN_MISUSE, error.what());
    broken(collective::GroupBroken(error.what()));
    return std::nullopt;
  } catch (const state::SourceFailed& error) {
    fail(ELASTICRUN_CALLBACK, error.what());
  } catch (const std::bad_alloc&) {
    fail(ELASTICRUN_FAILED,
         fmt::format("no memory for a second copy of the state ({} bytes)", table_.bytes()));
  }
  wire::Entered report{.step = StepId(progress.step)};
  if (last_end_) report.idle_ns = (now() - *last_end_).count();
  // A newcomer mostly waits for the others to switch, so the others measure the transfer time.
  if (holder || !entry.newcomer) report.transfer_ns = result.took.count();
  report.transfer_bytes = result.bytes;
  return report;
}

// Reads the save that the world begins with. False: it cannot be read, and the controller is told.
bool WorldSession::restore(const Entry& entry) {
  const std::string& folder = entry.world.restore;
  try {
    auto read = state::restore(folder, table_, &meter_.transferred);
    if (read) {
      install(*read);
      return true;
    }
    member_lock_.update([&](core::Member& member) {
      member.unreadable(read.error().text, read.error().number != 0);
    });
    broken(collective::GroupBroken("a save cannot be read"));
  } catch (const collective::GroupBroken& error) {
    broken(error);
  } catch (const state::SourceFailed& error) {
    fail(ELASTICRUN_CALLBACK, error.what());
  }
  return false;
}

void WorldSession::install(const state::Carried& received) {
  const Result<core::Progress> decoded = core::decode_progress(received.progress);
  if (!decoded) fail(ELASTICRUN_FAILED, decoded.error().text);
  progress = *decoded;
  table_.take_objects(received.objects);
}

}  // namespace elasticrun::worker::control
