// The part of member.hpp that is about saves of the state.
#include <utility>

#include "worker/core/member.hpp"

namespace elasticrun::worker::core {

void Member::on(const wire::Save& save) {
  if (save.number <= newest_save_) return;
  newest_save_ = save.number;
  if (save.alone) return save_alone(save);
  asked_ = save;
  save_without_step();
}

// The state that waits for a world is that after the newest step of this worker.
void Member::save_alone(const wire::Save& save) {
  if (phase_ == Phase::waiting && !world_ && committed_ != no_state)
    save_now_ = SaveOrder{save, aborted_, Rank(0), 1, true};
}

bool Member::writes_without_step() const {
  return phase_ == Phase::done || phase_ == Phase::saved ||
         (phase_ == Phase::waiting && save_now_->save.alone);
}

// One that was asked for since the vote stays asked for.
void Member::save_next(const wire::Save& save, bool waits) {
  save_now_ = SaveOrder{save, world_->world.generation, world_->rank,
                        static_cast<int>(world_->world.members.size()), waits};
  if (asked_ && asked_->number == save.number) asked_.reset();
}

// A worker that makes no more steps agrees with the others already: all are at the last step of
// this call, or of the job. What comes after their Release waits for the next call, on all of them.
void Member::save_without_step() {
  const bool at_the_end = phase_ == Phase::done && released_call_ < call_;
  if (asked_ && (at_the_end || phase_ == Phase::saved)) save_next(wire::Save(*asked_), true);
}

void Member::saved(wire::Saved report) {
  if (!evicted_) send(std::move(report));
}

void Member::unreadable(const std::string& reason, bool of_reader) {
  if (phase_ != Phase::transfer) return;  // aborted meanwhile
  send(wire::Unreadable{world_->world.generation, world_->world.restore, reason, of_reader});
}

}  // namespace elasticrun::worker::core
