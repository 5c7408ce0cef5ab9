// See process.hpp. The steps are in process_steps.cpp.
#include "simulate/faults/process.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include "job/core/course/ending.hpp"

namespace elasticrun::simulate::faults {

Process::Process(Stage& stage, WorkerId id, Handlers handlers)
    : stage_(stage),
      id_(id),
      handlers_(std::move(handlers)),
      member_(id),
      slowness_(stage.scene.mixed && id.value % 2 == 0 ? 3 : 1),
      bucket_thread_(stage.scene, [this](const auto& start) { reduce_bucket(start); }) {}

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
  const auto gone = [self = shared_from_this(), code, signal] {
    self->kept_ = false;
    self->stage_.plane.died(self->id_);
    self->handlers_.exited(code, signal);
  };
  if (code == 0 && signal == 0) return gone();
  if (stage_.rng.chance(0.7)) handlers_.dies(code, signal);
  // Its memory is taken apart, which may take long, or a driver keeps it.
  kept_ = stage_.rng.chance(0.01);
  stage_.queue.after(kept_
                         ? job::course::Ending::taking_apart_time + std::chrono::seconds(30)
                         : Duration(stage_.between_us(1, stage_.rng.chance(0.5) ? 1000 : 400'000)),
                     gone);
}

void Process::signal(int number) {
  if (number == SIGKILL) return die(0, SIGKILL);
  if (id_.value % 7 == 0) return;  // some programs ignore the signal
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

void Process::receive(const wire::ToWorker& message) {
  now_or_thawed([this, message] {
    if (const auto* prepare = std::get_if<wire::Prepare>(&message))
      worlds_[prepare->world.generation] = prepare->world;
    if (std::holds_alternative<wire::Abort>(message)) member_.held_up(stage_.plane.held_up(id_));
    member_.receive(message);
    do_outbox();
    pump();
  });
}

void Process::do_outbox() {
  for (auto& action : member_.take_outbox()) {
    if (auto* send = std::get_if<worker::core::Send>(&action)) {
      if (const auto* answer = std::get_if<wire::Answer>(&send->message))
        stage_.invariants.answered(id_, answer->generation, answer->committed);
      handlers_.send(std::move(send->message));
    } else if (const auto* form = std::get_if<worker::core::FormGroup>(&action)) {
      this->form(form->spec);
    } else if (const auto* connect = std::get_if<worker::core::ConnectGroup>(&action)) {
      this->connect(connect->generation);
    } else if (const auto* abort = std::get_if<worker::core::AbortGroups>(&action)) {
      stage_.plane.abort(id_, abort->up_to);
    } else if (const auto* drop = std::get_if<worker::core::DropGroup>(&action)) {
      stage_.plane.drop(id_, drop->generation);
    }
  }
}

void Process::form(const worker::collective::GroupSpec& spec) {
  const Generation g = spec.generation;
  stage_.plane.create(worlds_.at(g), id_, spec.size);
  connect_limits_[g] = spec.connect_limit;
  if (former_hangs_ || caught(Point::forming)) return;
  later(stage_.between_us(10, 5000), [this, g] {
    member_.published(g, "address");
    do_outbox();
  });
}

void Process::connect(Generation g) {
  if (former_hangs_ || (id_.value % 2 == 0 && caught(Point::forming))) return;
  const auto done = [this, g, self = shared_from_this()](const Plane::Ended& ended) {
    now_or_thawed([this, g, ended] {
      if (ended.sum)
        member_.formed(g, "simulated");
      else
        member_.form_failed(g, worker::collective::GroupBroken("a peer went away", ended.troubles));
      do_outbox();
    });
  };
  stage_.plane.connect(g, id_, connect_limits_[g], done);
}

bool Process::caught(Point in) {
  if (!struck_ || struck_->in != in) return false;
  const bool dies = std::exchange(struck_, std::nullopt)->dies;
  if (dies)
    die(0, SIGKILL);
  else
    (in == Point::forming ? former_hangs_ : hangs_) = true;
  return true;
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
  report.transfer_bytes = moved_;
  report.lost_link = stage_.plane.has_lost_link(id_);
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
  if (wants_to_leave_) return leave_now();
  switch (member_.task()) {
    case worker::core::Task::wait:
      return phase("idle");
    case worker::core::Task::evicted:
      in_train_ = false;
      return later(stage_.between_us(10, 20'000), [this] { die(0, 0); });
    case worker::core::Task::save:
      return save(member_.take_save().value());
    case worker::core::Task::released:
      return end_call();
    case worker::core::Task::enter:
      return enter();
    case worker::core::Task::step:
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
  phase("transfer");
  if (caught(Point::transfer)) return;
  const wire::World& world = member_.world();
  const Generation g = world.generation;
  bool all_hold = true;
  for (const auto& member : world.members) all_hold &= member.holds_state;
  const bool restores = !world.restore.empty() && member_.committed() == no_state;
  if (restores && stage_.rng.chance(0.02))
    return later(stage_.between_us(10, 10'000), [this] {
      member_.unreadable("a disk failed", false);
      broken("a save cannot be read", {});
    });
  if (restores) model_ = stage_.saves.at(world.restore);
  if (all_hold) return later(stage_.between_us(1, 100), [this] { entered(model_); });
  if (transfer_fails()) return;
  if (member_.holds_state()) stage_.holders[g].push_back(model_);
  const auto complete = [this, g] { stage_.invariants.transferred(g, stage_.holders[g]); };
  stage_.plane.transfer(g, id_, complete,
                        [this, g, self = shared_from_this()](const Plane::Ended& ended) {
                          now_or_thawed([this, g, ended] {
                            if (!ended.sum || stage_.holders[g].empty())
                              return broken("the transfer broke", ended.troubles);
                            ++moved_;
                            entered(stage_.holders[g].front());
                          });
                        });
}

void Process::discard() {
  busy_ = false;
  phase("idle");
  do_outbox();
  pump();
}

void Process::broken(const char* what,
                     const std::vector<worker::collective::PeerTrouble>& troubles) {
  busy_ = false;
  phase("idle");
  member_.broken(worker::collective::GroupBroken(what, troubles));
  do_outbox();
  pump();
}

// A holder of the state reports the spoiled member, which reports the first holder; the other
// members find a peer that has hung up.
bool Process::transfer_fails() {
  const auto& world = member_.world();
  const auto& members = world.members;
  const auto is_spoiled = [&](const wire::Member& m) {
    const auto found = stage_.spoiled.find(m.worker);
    if (m.holds_state || found == stage_.spoiled.end()) return false;
    auto& spoiled = found->second;
    if (spoiled.generation == world.generation) return true;
    if (spoiled.times == 0) return false;
    --spoiled.times;
    spoiled.generation = world.generation;
    return true;
  };
  const auto victim = std::ranges::find_if(members, is_spoiled);
  if (victim == members.end()) return false;
  const auto source = std::ranges::find(members, true, &wire::Member::holds_state);
  const auto peer = victim->worker == id_ ? source : victim;
  const bool messenger = !member_.holds_state() && victim->worker != id_;
  const worker::collective::PeerTrouble trouble{static_cast<int>(peer - members.begin()), messenger,
                                                messenger ? "closed by peer" : "timed out"};
  later(stage_.between_us(10, 100'000),
        [this, trouble] { broken("the transfer broke", {trouble}); });
  return true;
}

void Process::entered(const Model& received) {
  const auto finish = [this] {
    busy_ = false;
    phase("idle");
    // At an epoch's end the change was forced, and how far on_epoch of rank 0 had got is unknown.
    const worker::core::Progress& at = model_.progress;
    if (at.train_call == call_) epochs_ended_ = at.epoch - (at.cursor == 0 && at.epoch > 0 ? 1 : 0);
    wire::Entered report;
    report.step = StepId(model_.progress.step);
    stage_.invariants.enters(id_, member_.world().generation, report.step);
    member_.entered(report);
    do_outbox();
    pump();
  };
  if (!member_.in_transfer()) return discard();  // aborted meanwhile
  if (member_.holds_state()) {
    if (member_.committed() == no_state && member_.world().restore.empty())
      stage_.invariants.started_fresh(id_, member_.world().generation);
    if (!member_.world().restore.empty())
      stage_.invariants.received(id_, member_.committed(), StepId(model_.progress.step));
    return finish();
  }
  if (!member_.may_swap()) return discard();
  later(stage_.between_us(10, 2000), [this, finish, received] {
    stage_.invariants.received(id_, member_.committed(), StepId(received.progress.step));
    model_ = received;
    finish();
  });
}

// The program leaves at the end of its step, and ends once no peer needs its groups.
void Process::leave() {
  now_or_thawed([this] {
    wants_to_leave_ = true;
    pump();
  });
}

void Process::leave_now() {
  wants_to_leave_ = false;
  member_.leave("the program left");
  stage_.invariants.leaves(id_, member_.committed());
  in_train_ = false;
  do_outbox();
  end_if_left();
}

void Process::end_if_left() {
  if (!member_.leaves()) return later(stage_.between_us(10, 20'000), [this] { die(0, 0); });
  later(stage_.between_us(100, 1000), [this] { end_if_left(); });
}

}  // namespace elasticrun::simulate::faults
