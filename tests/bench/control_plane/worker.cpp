#include "tests/bench/control_plane/worker.hpp"

#include <fmt/format.h>

#include <utility>

namespace elasticrun::bench {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Duration sample_interval = milliseconds(500);
constexpr std::int64_t share = 32;  // samples of one worker in a step

// Each worker answers after a delay of its own, which is the same in every run.
Duration spread(WorkerId worker, Duration over) {
  const std::uint64_t dice = worker.value * 0x9e3779b97f4a7c15ull >> 40;
  return over * static_cast<std::int64_t>(dice) / (std::int64_t{1} << 24);
}

}  // namespace

StubWorker::StubWorker(simulate::Queue& queue, Training& training, WorkerId id, Time first_sample,
                       Handlers handlers)
    : queue_(queue),
      training_(training),
      id_(id),
      next_sample_(first_sample),
      handlers_(std::move(handlers)) {}

void StubWorker::later(Duration delay, std::function<void()> what) {
  queue_.after(delay, [self = shared_from_this(), what = std::move(what)] {
    if (self->alive_) what();
  });
}

void StubWorker::send(const wire::FromWorker& message) {
  if (alive_) handlers_.send(message);
}

// The program starts, loads its library, reads its data, calls train.
void StubWorker::begin() {
  later(spread(id_, milliseconds(400)), [this] {
    send(wire::Join{1, "bench"});
    await_sample();
    later(milliseconds(50), [this] {
      send(wire::Ready{{.call = 1,
                        .samples = std::int64_t{1} << 40,
                        .epochs = 1,
                        .batch = share,
                        .state_bytes = 100u << 20,
                        .state_layout = 0x9e3779b97f4a7c15ull}});
    });
  });
}

void StubWorker::sample() {
  wire::Sample report;
  report.generation = training_.generation_of(id_);
  report.step = committed();
  report.phase = report.generation == Generation() ? "idle" : "reduce";
  if (report.generation != Generation()) {
    report.steps = report.step.value - std::exchange(sampled_, report.step).value;
    report.samples = report.steps * share;
    report.wall_ns = report.steps * 100'000'000;
    report.compute_ns = report.steps * 70'000'000;
    report.reduce_ns = report.steps * 25'000'000;
    report.waiting_ns = 12'345'678;
  }
  send(report);
  await_sample();
}

void StubWorker::await_sample() {
  while (next_sample_ <= queue_.now()) next_sample_ += sample_interval;
  later(next_sample_ - queue_.now(), [this] { sample(); });
}

void StubWorker::receive(const wire::ToWorker& message) {
  if (alive_) std::visit([this](const auto& text) { on(text); }, message);
}

void StubWorker::on(const wire::Prepare& prepare) {
  const Generation g = prepare.world.generation;
  if (g <= aborted_) return;
  training_.prepare(prepare.world);
  if (!training_.is_in_next(id_)) return send(wire::Prepared{g, {}});  // a leaver
  later(microseconds(500) + spread(id_, milliseconds(2)), [this, g] {
    if (!training_.prepares(g)) return;
    send(
        wire::Publish{g,
                      fmt::format("10.{}.{}.{}/{:04x}", id_.value >> 16 & 255, id_.value >> 8 & 255,
                                  id_.value & 255, 32768 + id_.value % 28232),
                      training_.needs_in_next(id_)});
  });
}

void StubWorker::on(const wire::Gathered& gathered) {
  later(milliseconds(5) + spread(id_, milliseconds(5)), [this, g = gathered.generation] {
    send(wire::Prepared{g, "gloo"});
  });
}

void StubWorker::on(const wire::Abort& abort) {
  if (abort.generation <= aborted_) return;
  aborted_ = abort.generation;
  training_.abort(aborted_);
  send(wire::Answer{aborted_, committed()});
}

void StubWorker::entered(const wire::Entered& report) {
  wire::Entered own = report;
  if (!std::exchange(holds_state_, true)) {
    own.idle_ns = -1;
    sampled_ = own.step;
  }
  send(own);
}

void StubWorker::broken(const wire::Broken& message) {
  if (message.generation > aborted_) send(message);
}

void StubWorker::end_soon() {
  later(milliseconds(5) + spread(id_, milliseconds(50)), [this] { die(0, 0); });
}

void StubWorker::die(int code, int signal) {
  if (std::exchange(alive_, false)) handlers_.exited(code, signal);
}

}  // namespace elasticrun::bench
