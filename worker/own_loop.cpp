// See own_loop.hpp.
#include "worker/own_loop.hpp"

#include "base/boot_clock.hpp"

namespace elasticrun::worker {
namespace {

constexpr const char* begin_again =
    "the world has changed: this step did not happen; undo what apply did and begin it again";

constexpr const char* end_again =
    "the world has changed before all had finished: do again what follows the last commit, then "
    "call finish";

// The whole loop is one call of train.
constexpr std::int64_t only_call = 1;

Time now() { return std::chrono::steady_clock::now(); }

}  // namespace

void OwnLoop::start() {
  if (presence_.progress.train_call == 0) presence_.progress.train_call = only_call;
  presence_.ready({.call = only_call});
  enter_next();
}

// The program is about to compute a step in the world that it now is in.
void OwnLoop::enter_next() {
  if (!presence_.await())
    presence_.fail(ELASTICRUN_FAILED, "the world has finished the loop without this worker");
  commit_failed_ = unsettled_ = false;
  reduce_ = {};
  last_commit_ = now();
  presence_.meter().enter(Meter::Phase::compute, last_commit_);
}

// False: there is no world to step in at present.
bool OwnLoop::begin() {
  return presence_.gate().update([](Member& member) { return member.begin_compute(boot_now()); });
}

void OwnLoop::collective(const std::function<void(Group&)>& operation) {
  if (begin()) {
    try {
      presence_.await_gpu();
      const Time begun = now();
      presence_.meter().enter(Meter::Phase::reduce, begun);
      operation(*presence_.group());
      const Time end = now();
      reduce_ += end - begun;
      unsettled_ = true;
      presence_.meter().enter(Meter::Phase::compute, end);
      return;
    } catch (const GroupBroken& error) {
      presence_.broken(error);
    }
  }
  presence_.table().restore_buffers();
  enter_next();
  throw Stop(ELASTICRUN_WORLD_CHANGED, begin_again);
}

void OwnLoop::all_reduce(void* data, DataType type, std::size_t count) {
  collective([&](Group& group) { group.all_reduce(data, type, count); });
}

void OwnLoop::broadcast(void* data, std::size_t bytes, int root) {
  collective([&](Group& group) { group.broadcast(data, bytes, root); });
}

void OwnLoop::barrier() {
  collective([](Group& group) { group.barrier(); });
}

// Twice in a row it would wait for ever: nothing between has entered the next world.
void OwnLoop::commit_failed() {
  if (commit_failed_)
    presence_.fail(ELASTICRUN_MISUSE,
                   "commit: the world has changed, and no collective was called since; call "
                   "all_reduce or barrier in each step before apply");
  commit_failed_ = true;
  throw Stop(ELASTICRUN_WORLD_CHANGED, begin_again);
}

void OwnLoop::commit() {
  if (!begin()) commit_failed();
  double votes = presence_.gate().update([](Member& member) { return member.vote(); });
  Time begun{};
  try {
    presence_.await_gpu();
    begun = now();
    presence_.meter().enter(Meter::Phase::reduce, begun);
    presence_.group()->all_reduce(&votes, DataType::float64, 1);
  } catch (const GroupBroken& error) {
    presence_.broken(error);
    commit_failed();
  }
  if (!presence_.gate().update([&](Member& member) { return member.may_apply(votes, boot_now()); }))
    commit_failed();
  try {
    presence_.table().commit_buffers();
  } catch (const GroupBroken& error) {  // the GPU's; the step is neither whole nor undone
    presence_.fail(ELASTICRUN_FAILED, error.what());
  }
  ++presence_.progress.step;
  presence_.gate().update([](Member& member) { return member.commit(); });
  const Time end = now();
  presence_.note_end(end);
  const Duration wall = end - last_commit_;
  reduce_ += end - begun;
  presence_.meter().committed({.wall = wall, .compute = wall - reduce_, .reduce = reduce_}, end);
  enter_next();
}

// A member that has missed the last step gets it with the state, in a world that all enter here.
void OwnLoop::finish() {
  if (commit_failed_) {
    enter_next();
    throw Stop(ELASTICRUN_WORLD_CHANGED, begin_again);
  }
  presence_.meter().enter(Meter::Phase::idle, now());
  const Generation generation = presence_.generation();
  while (presence_.await()) {
    if (unsettled_ && presence_.generation() != generation) {
      enter_next();
      throw Stop(ELASTICRUN_WORLD_CHANGED, end_again);
    }
    presence_.done(only_call);
  }
  presence_.gate().update([](Member& member) { member.outside(); });
  finished_ = true;
}

}  // namespace elasticrun::worker
