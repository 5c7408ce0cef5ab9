#include "simulate/process.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include "worker/shares.hpp"

namespace elasticrun::simulate {

using std::chrono::milliseconds;

Process::Process(Stage& stage, WorkerId id, Handlers handlers)
    : stage_(stage),
      id_(id),
      handlers_(std::move(handlers)),
      member_(id),
      slowness_(stage.scene.mixed && id.value % 2 == 0 ? 3 : 1) {}

// A frozen process does nothing; what was due happens when it is thawed.
void Process::now_or_thawed(std::function<void()> what) {
  if (!alive_) return;
  if (frozen_)
    deferred_.push_back(std::move(what));
  else
    what();
}

void Process::later(Duration delay, std::function<void()> what) {
  stage_.queue.after(delay, [self = shared_from_this(), what = std::move(what)]() mutable {
    self->now_or_thawed(std::move(what));
  });
}

void Process::thaw() {
  frozen_ = false;
  for (auto& what : std::exchange(deferred_, {})) now_or_thawed(std::move(what));
}

void Process::die(int code, int signal) {
  if (!std::exchange(alive_, false)) return;
  deferred_.clear();
  stage_.invariants.process_gone(id_);
  stage_.plane.died(id_);
  handlers_.exited(code, signal);
}

void Process::signal(int number) {
  if (number == SIGKILL) return die(0, SIGKILL);
  if (id_.value % 7 == 0) return;  // some programs do not listen
  later(stage_.between_us(10, 150'000), [this, number] { die(0, number); });
}

// ---------------------------------------------------------------- the library's threads

void Process::begin() {
  later(stage_.between_us(1000, 30'000), [this] {
    handlers_.send(wire::Join{});
    later(stage_.scene.spec.deadlines.sample_interval, [this] { sample(); });
    later(stage_.between_us(1000, 30'000), [this] { train(); });
  });
}

void Process::receive(const wire::ToWorker& letter) {
  now_or_thawed([this, letter] {
    member_.receive(letter);
    do_outbox();
    pump();
  });
}

void Process::do_outbox() {
  for (auto& action : member_.take_outbox()) {
    if (auto* send = std::get_if<worker::Send>(&action)) {
      if (const auto* answer = std::get_if<wire::Answer>(&send->letter))
        stage_.invariants.answered(id_, answer->generation, answer->committed);
      handlers_.send(std::move(send->letter));
    } else if (const auto* form = std::get_if<worker::FormGroup>(&action)) {
      stage_.plane.create(form->spec.generation, id_, form->spec.size);
      later(stage_.between_us(10, 5000), [this, g = form->spec.generation] {
        member_.published(g, "address");
        do_outbox();
      });
    } else if (const auto* connect = std::get_if<worker::ConnectGroup>(&action)) {
      const Generation g = connect->generation;
      stage_.plane.collective(g, id_, -1, 0, nullptr,
                              [this, g, self = shared_from_this()](auto sum) {
                                now_or_thawed([this, g, ok = sum.has_value()] {
                                  if (ok)
                                    member_.formed(g, "simulated");
                                  else
                                    member_.form_failed(g, worker::GroupBroken("a peer went away"));
                                  do_outbox();
                                });
                              });
    } else if (const auto* abort = std::get_if<worker::AbortGroups>(&action)) {
      stage_.plane.abort(id_, abort->up_to);
    } else if (const auto* drop = std::get_if<worker::DropGroup>(&action)) {
      stage_.plane.drop(id_, drop->generation);
    }
  }
}

void Process::sample() {
  const auto waiting =
      phase_since_ == Time{} ? Duration::zero() : stage_.queue.now() - phase_since_;
  wire::Sample report;
  if (member_.in_world()) report.generation = member_.world().generation;
  report.step = member_.committed();
  report.steps = std::exchange(steps_, 0);
  report.samples = std::exchange(samples_, 0);
  report.wall_ns = report.steps * stage_.scene.compute.count();
  report.compute_ns = std::exchange(computed_, {}).count();
  report.waiting_ns = waiting.count();
  report.phase = phase_;
  handlers_.send(report);
  later(stage_.scene.spec.deadlines.sample_interval, [this] { sample(); });
}

void Process::phase(const char* name) {
  phase_ = name;
  phase_since_ = stage_.queue.now();
}

// ---------------------------------------------------------------- the program

void Process::train() {
  ++call_;
  in_train_ = true;
  wire::TrainSpec spec;
  spec.call = call_;
  spec.samples = stage_.scene.samples;
  spec.epochs = stage_.scene.epochs;
  member_.ready(spec);
  do_outbox();
  pump();
}

void Process::pump() {
  if (!alive_ || busy_ || !in_train_) return;
  switch (member_.task()) {
    case worker::Task::wait:
      return phase("idle");
    case worker::Task::evicted:
      in_train_ = false;
      return later(stage_.between_us(10, 20'000), [this] { die(0, 0); });
    case worker::Task::released:
      return end_call();
    case worker::Task::enter:
      return enter();
    case worker::Task::step:
      return step();
  }
}

void Process::end_call() {
  member_.outside();
  in_train_ = false;
  phase("idle");
  if (call_ < stage_.scene.train_calls)
    return later(stage_.between_us(10, 20'000), [this] { train(); });
  finished_ = true;
  later(stage_.between_us(10, 50'000), [this] { die(0, 0); });
}

void Process::enter() {
  member_.begin_transfer();
  busy_ = true;
  index_ = 0;
  const wire::World& world = member_.world();
  const Generation g = world.generation;
  bool all_hold = true;
  for (const auto& member : world.members) all_hold &= member.holds_state;
  if (all_hold) return later(stage_.between_us(1, 100), [this] { entered(model_); });
  if (transfer_fails()) return;
  if (member_.holds_state()) stage_.holders[g].push_back(model_);
  const auto complete = [this, g] { stage_.invariants.transferred(g, stage_.holders[g]); };
  stage_.plane.collective(g, id_, index_++, 0, complete,
                          [this, g, self = shared_from_this()](auto sum) {
                            now_or_thawed([this, g, ok = sum.has_value()] {
                              if (!ok || stage_.holders[g].empty()) {
                                busy_ = false;
                                member_.broken(worker::GroupBroken("the transfer broke"));
                                do_outbox();
                                return pump();
                              }
                              entered(stage_.holders[g].front());
                            });
                          });
}

// Whoever sends to the unreachable member says so, and it of the one who does; the others find a
// peer that has hung up.
bool Process::transfer_fails() {
  const auto& members = member_.world().members;
  const auto receives = [&](const wire::Member& m) {
    return !m.holds_state && stage_.unreachable.contains(m.worker);
  };
  const auto victim = std::ranges::find_if(members, receives);
  if (victim == members.end()) return false;
  const auto source = std::ranges::find(members, true, &wire::Member::holds_state);
  const auto peer = victim->worker == id_ ? source : victim;
  const bool messenger = !member_.holds_state() && victim->worker != id_;
  const worker::PeerTrouble trouble{static_cast<int>(peer - members.begin()), messenger,
                                    messenger ? "closed by peer" : "timed out"};
  later(stage_.between_us(10, 100'000), [this, trouble] {
    busy_ = false;
    member_.broken(worker::GroupBroken("the transfer broke", {trouble}));
    do_outbox();
    pump();
  });
  return true;
}

void Process::entered(const Model& received) {
  const auto finish = [this] {
    busy_ = false;
    wire::Entered report;
    report.step = Step(model_.progress.step);
    member_.entered(report);
    do_outbox();
    pump();
  };
  if (!member_.in_transfer()) {  // aborted meanwhile
    busy_ = false;
    return pump();
  }
  if (member_.holds_state()) {
    if (member_.committed() == no_state)
      stage_.invariants.started_fresh(id_, member_.world().generation);
    return finish();
  }
  if (!member_.may_swap()) {
    busy_ = false;
    return pump();
  }
  later(stage_.between_us(10, 2000), [this, finish, received] {
    stage_.invariants.received(id_, member_.committed(), Step(received.progress.step));
    model_ = received;
    finish();
  });
}

void Process::step() {
  worker::Progress& progress = model_.progress;
  if (progress.train_call > call_)
    return end_call();  // a newcomer: the world has finished this call
  if (progress.train_call < call_) {
    progress.train_call = call_;
    progress.epoch = progress.cursor = 0;
  }
  if (progress.epoch >= stage_.scene.epochs) {
    member_.done(call_);
    phase("idle");
    return do_outbox();
  }
  member_.begin_compute(stage_.queue.now());
  busy_ = true;
  phase("compute");
  if (hangs_) return;
  const Generation g = member_.world().generation;
  const wire::World& world = member_.world();
  const auto range = worker::step_range(progress, world.plan.global_batch, stage_.scene.samples);
  const auto shares =
      worker::split(range.count(), static_cast<int>(world.members.size()), world.plan.weights);
  share_ = shares[static_cast<std::size_t>(member_.rank().value)];
  // The scene's time is that of an equal share.
  const Duration time = (stage_.scene.compute / 2 + stage_.between_us(0, 4000)) * slowness_ *
                        share_ * std::ssize(shares) / range.count();
  computed_ += time;
  later(time, [this, g] {
    phase("reduce");
    if (!member_.running(g)) return reduced(g, std::nullopt);
    const auto complete = [this, g] { stage_.invariants.reduction_complete(g); };
    stage_.plane.collective(g, id_, index_++, member_.vote(), complete,
                            [this, g, self = shared_from_this()](auto votes) {
                              now_or_thawed([this, g, votes] { reduced(g, votes); });
                            });
  });
}

void Process::reduced(Generation generation, std::optional<double> votes) {
  if (!votes) {
    busy_ = false;
    member_.broken(worker::GroupBroken("the reduction broke"));
    do_outbox();
    return pump();
  }
  if (!member_.may_apply(*votes, stage_.queue.now())) {
    busy_ = false;
    return pump();
  }
  phase("apply");
  later(stage_.between_us(10, 3000), [this, generation] { applied(generation); });
}

void Process::applied(Generation generation) {
  const worker::Progress before = model_.progress;
  const auto range =
      worker::step_range(before, member_.world().plan.global_batch, stage_.scene.samples);
  model_.digest = updated(model_.digest, before, range);
  model_.progress = before.next(range.count(), stage_.scene.samples);
  stage_.invariants.committed(id_, generation, before, range, model_.digest);
  ++steps_;
  samples_ += share_;
  member_.commit();
  busy_ = false;
  do_outbox();
  pump();
}

void Process::leave() {
  now_or_thawed([this] {
    if (busy_ || !in_train_) return;
    member_.leave("the program left");
    in_train_ = false;
    do_outbox();
    later(stage_.between_us(10, 20'000), [this] { die(0, 0); });
  });
}

}  // namespace elasticrun::simulate
