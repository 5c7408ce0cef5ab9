// The simulated data plane: one world of workers that all do the same at the same time.
//
// In the real library each worker decides for itself when to vote, enter and commit; as long as no
// worker is slow, all members decide the same. So it is decided here once for the whole world: a
// message costs the simulation the same in a world of any size, and only the controller's work
// grows.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "simulate/queue.hpp"
#include "wire/messages.hpp"
#include "worker/core/transfer_plan.hpp"

namespace elasticrun::bench {

class Training {
 public:
  struct Handlers {  // what happens to one member
    std::function<void(WorkerId, const wire::Entered&)> entered;
    std::function<void(WorkerId, const wire::Committed&)> committed;
    std::function<void(WorkerId, const wire::Broken&)> broken;
    std::function<void(WorkerId, const wire::Done&)> done;
  };
  Training(simulate::Queue& queue, Handlers handlers)
      : queue_(queue), handlers_(std::move(handlers)) {}

  // ---- messages to a worker; the same for all of a generation
  void prepare(const wire::World& world);
  bool prepares(Generation generation) const { return next_ && next_->generation == generation; }
  bool is_in_next(WorkerId worker) const { return next_ && next_->ranks.contains(worker); }
  // The ranks whose addresses a member of the next world needs; empty: all.
  std::vector<std::int32_t> needs_in_next(WorkerId worker) const;
  void go(const wire::Go& message);
  void cancel(Generation generation);
  void abort(Generation up_to);

  // ---- what happens
  // These members of the running world died; the others find their connections closed.
  void die(const std::vector<WorkerId>& dead);
  // The samples are used up.
  void finish();

  StepId step() const;  // the last one that every member has committed
  // The generation in which this worker steps; 0: none.
  Generation generation_of(WorkerId worker) const;
  bool running() const { return running_.has_value(); }
  const std::vector<WorkerId>& members() const { return running_->members; }
  // `size` members have committed a step together, or step while another world is prepared.
  bool runs(std::size_t size) const {
    return running_ && running_->members.size() == size &&
           (running_->committed || (running_->entered && next_));
  }
  // `size` members have committed a step together, and no other world is being prepared.
  bool settled(std::size_t size) const {
    return running_ && running_->committed && !next_ && running_->members.size() == size;
  }

 private:
  struct World {
    Generation generation;
    std::vector<WorkerId> members;
    std::map<WorkerId, int> ranks;  // of the members
    worker::core::TransferSides transfer;
    std::size_t leavers = 0, told = 0;
    bool entered = false, committed = false;
  };
  void enter(Generation generation);
  void commit(Generation generation);
  void stand();  // stops stepping

  simulate::Queue& queue_;
  Handlers handlers_;
  std::optional<World> running_, next_;
  StepId base_{0};             // committed when the present run of steps began
  std::optional<Time> since_;  // when that was; empty while there are no steps
  bool born_ = false;          // a world has stepped already
};

}  // namespace elasticrun::bench
