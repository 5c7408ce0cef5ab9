// See own_loop.hpp.
#include "worker/training/own_loop.hpp"

#include <fmt/format.h>

#include <new>

namespace elasticrun::worker::training {
namespace {

// For the controller the whole loop is one call of train.
constexpr std::int64_t only_call = 1;

state::StateCopy copy_of(state::StateTable& table) {
  try {
    return state::StateCopy(table);
  } catch (const std::bad_alloc&) {
    throw control::Stop(
        ELASTICRUN_FAILED,
        fmt::format("start: no memory for a second copy of the state ({} bytes), which a "
                    "loop of one's own needs; train needs none",
                    table.registered_bytes()));
  }
}

}  // namespace

OwnLoop::OwnLoop(control::WorldSession& session)
    : session_(session), divergence_(session), committed_(copy_of(session.table())) {}

void OwnLoop::start() {
  if (session_.progress.train_call == 0) session_.progress.train_call = only_call;
  session_.ready({.call = only_call});
  enter();
}

// Waits for a world, and begins a step.
void OwnLoop::enter() {
  left_ = false;
  if (!session_.await())
    session_.fail(ELASTICRUN_FAILED, "the world has finished the loop without this worker");
  begin_step();
}

// Copies the state: the program computes next.
void OwnLoop::begin_step() {
  reduce_ = {};
  samples_ = 0;
  calls_.clear();
  begun_ = control::now();
  keep_state();
  session_.meter().enter(control::StepMeter::Phase::compute, begun_);
}

// A step that does not happen is undone from it.
void OwnLoop::keep_state() {
  try {
    committed_.take();
  } catch (const collective::GroupBroken& error) {
    session_.fail(ELASTICRUN_FAILED, error.what());
  } catch (const state::SourceFailed& error) {
    session_.fail(ELASTICRUN_CALLBACK, error.what());
  } catch (const std::bad_alloc&) {
    session_.fail(ELASTICRUN_FAILED, "no memory for a second copy of the state");
  }
}

// The step under way does not count here: puts the state back as it was before the step, and enters
// the next world with that world's state.
void OwnLoop::abandon() {
  // The next world may take long to form, and a worker that waits for it does not hang in a step.
  session_.meter().enter(control::StepMeter::Phase::idle, control::now());
  try {
    committed_.put_back();
    session_.table().restore_buffers();
  } catch (const collective::GroupBroken& error) {
    session_.fail(ELASTICRUN_FAILED, error.what());
  } catch (const state::SourceFailed& error) {
    session_.fail(ELASTICRUN_CALLBACK, error.what());
  }
  enter();
}

void OwnLoop::begin_again() {
  throw control::Stop(
      ELASTICRUN_WORLD_CHANGED,
      fmt::format("the world has changed: nothing since the last commit happened, and the "
                  "registered state is as step {} begins; begin that one",
                  session_.progress.step));
}

void OwnLoop::collective(const std::function<void(collective::Group&)>& operation) {
  if (settle() && session_.begin_compute()) {
    try {
      session_.await_gpu();
      const Time begun = control::now();
      session_.meter().enter(control::StepMeter::Phase::reduce, begun);
      operation(*session_.group());
      const Time end = control::now();
      reduce_ += end - begun;
      session_.meter().enter(control::StepMeter::Phase::compute, end);
      session_.collective_ended();
      return;
    } catch (const collective::GroupBroken& error) {
      session_.broken(error);
    }
  }
  abandon();
  begin_again();
}

void OwnLoop::all_reduce(void* data, collective::DataType type, std::size_t count) {
  calls_.add(all_reduce_call(type, count));
  collective([&](collective::Group& group) { group.all_reduce(data, type, count); });
}

// The reduction comes after what the program has enqueued on a GPU before, not after what it
// enqueues meanwhile.
void OwnLoop::all_reduce_start(void* data, collective::DataType type, std::size_t count) {
  calls_.add(all_reduce_call(type, count));
  if (!session_.begin_compute()) {
    stop_started();
    abandon();
    begin_again();
  }
  gpu::Arithmetic& arithmetic = session_.table().arithmetic();
  const std::size_t number = started_++;
  arithmetic.mark(number);
  queue_.push([&arithmetic, number, group = session_.group(), data, type, count] {
    arithmetic.follow({&number, 1});
    group->all_reduce(data, type, count);
  });
}

void OwnLoop::all_reduce_wait() {
  if (settle()) return;
  abandon();
  begin_again();
}

// Waits for the all-reduces that were started. False: one of them has failed.
bool OwnLoop::settle() {
  if (started_ == 0) return true;
  const Time begun = control::now();
  session_.meter().enter(control::StepMeter::Phase::reduce, begun);
  try {
    queue_.wait();
    session_.table().arithmetic().join();
  } catch (const collective::GroupBroken& error) {
    started_ = 0;
    session_.broken(error);
    return false;
  }
  for (; started_ > 0; --started_) session_.collective_ended();
  const Time end = control::now();
  reduce_ += end - begun;
  session_.meter().enter(control::StepMeter::Phase::compute, end);
  return true;
}

// Before the group is let go of. Their memory is not touched afterwards.
void OwnLoop::stop_started() {
  if (started_ == 0) return;
  if (collective::Group* const group = session_.group()) group->abort();
  queue_.cancel();
  started_ = 0;
}

OwnLoop::~OwnLoop() { stop_started(); }

void OwnLoop::broadcast(void* data, std::size_t bytes, int root) {
  calls_.add(broadcast_call(bytes, root));
  collective([&](collective::Group& group) { group.broadcast(data, bytes, root); });
}

void OwnLoop::barrier() {
  calls_.add(barrier_call);
  collective([](collective::Group& group) { group.barrier(); });
}

// Returns false when this worker does not know that all members have reached this commit.
bool OwnLoop::agree() {
  if (!settle() || !session_.begin_compute()) return false;
  const core::Agreement calls(calls_.hash());
  core::Votes votes =
      session_.member_lock().update([](core::Member& member) { return member.votes(); });
  try {
    session_.await_gpu();
    const Time begun = control::now();
    session_.meter().enter(control::StepMeter::Phase::reduce, begun);
    struct {
      core::Votes::Row votes;
      core::Agreement::Row calls;  // whether all have made the same ones
      double committed;            // how many have committed before
      Divergence::Row state;       // whether all hold the same
    } sums{votes.row(), calls.mine(), has_committed_ ? 1.0 : 0.0, divergence_.look()};
    session_.group()->all_reduce(&sums, collective::DataType::float64,
                                 sizeof sums / sizeof(double));
    if (!calls.holds(sums.calls, session_.size())) calls_differ(static_cast<int>(sums.committed));
    divergence_.check(*session_.group(), sums.state);
    votes = core::Votes::of(sums.votes);
    reduce_ += control::now() - begun;
  } catch (const collective::GroupBroken& error) {
    session_.broken(error);
    return false;
  }
  return session_.may_apply(votes);
}

// All members see the same sums, and are here.
void OwnLoop::calls_differ(int with_steps) {
  session_.differ(
      has_committed_, with_steps,
      fmt::format("commit: the ranks have not made the same calls in step {}; rank {} of {} has "
                  "made: {}; number, order, kinds, types, sizes and roots must be the same on all",
                  session_.progress.step, session_.rank(), session_.size(), calls_.words()));
}

void OwnLoop::commit() {
  const std::int64_t step = session_.progress.step;
  if (!agree()) {
    abandon();
    if (session_.progress.step != step + 1) begin_again();
    return;  // the others have committed the step, and this worker has received it
  }
  try {
    session_.table().commit_buffers();
  } catch (const collective::GroupBroken& error) {  // the GPU failed: the step is half committed
    session_.fail(ELASTICRUN_FAILED, error.what());
  }
  ++session_.progress.step;
  has_committed_ = true;
  const auto after =
      session_.member_lock().update([](core::Member& member) { return member.commit(); });
  const Time end = control::now();
  session_.note_end(end);
  const Duration wall = end - begun_;
  session_.meter().committed(
      {.samples = samples_, .wall = wall, .compute = wall - reduce_, .reduce = reduce_}, end);
  (void)session_.save_if_agreed();
  left_ = after == core::Member::After::left;
  left_ ? begin_step() : enter();
}

// A member that has missed the last step gets it with the state, in a world that all members enter
// here. So this memory may be sent to another member from now on, and must hold the committed
// state.
void OwnLoop::finish() {
  if (left_) enter();  // no collective has followed the commit
  all_reduce_wait();
  if (!committed_.holds())
    throw control::Stop(
        ELASTICRUN_MISUSE,
        "finish: registered state has changed since the last commit; commit the last step, "
        "and change nothing after it");
  session_.meter().enter(control::StepMeter::Phase::idle, control::now());
  const Generation generation = session_.generation();
  while (session_.await()) {
    if (in_step() && session_.generation() != generation) {
      enter();
      throw control::Stop(
          ELASTICRUN_WORLD_CHANGED,
          "the world has changed before all had finished: do again what follows the last "
          "commit, then call finish");
    }
    session_.done(only_call);
  }
  session_.member_lock().update([](core::Member& member) { member.outside(); });
  finished_ = true;
}

}  // namespace elasticrun::worker::training
