// A simulated worker's side of the conversation with the controller: the messages that
// worker/core/member.* and the library around it send, without the work behind them. All workers
// share one data plane (training.hpp).
#pragma once

#include <functional>
#include <memory>

#include "simulate/queue.hpp"
#include "tests/bench/control_plane/training.hpp"
#include "wire/messages.hpp"

namespace elasticrun::bench {

class StubWorker : public std::enable_shared_from_this<StubWorker> {
 public:
  struct Handlers {
    std::function<void(const wire::FromWorker&)> send;
    std::function<void(int code, int signal)> exited;
  };
  // All workers of a host take their samples at the same moment.
  StubWorker(simulate::Queue& queue, Training& training, WorkerId id, Time first_sample,
             Handlers handlers);

  void begin();
  void receive(const wire::ToWorker& message);
  void die(int code, int signal);

  // ---- calls from training
  void entered(const wire::Entered& report);
  void broken(const wire::Broken& message);
  void send(const wire::FromWorker& message);

 private:
  void later(Duration delay, std::function<void()> what);
  void sample();
  void await_sample();
  StepId committed() const { return holds_state_ ? training_.step() : no_state; }
  void end_soon();

  void on(const wire::Prepare& prepare);
  void on(const wire::Gathered& gathered);
  void on(const wire::Go& go) { training_.go(go); }
  void on(const wire::Cancel& cancel) { training_.cancel(cancel.generation); }
  void on(const wire::Abort& abort);
  void on(const wire::Save&) {}
  void on(const wire::Release&) { end_soon(); }
  void on(const wire::Dismiss&) { end_soon(); }
  void on(const wire::Lease&) {}

  simulate::Queue& queue_;
  Training& training_;
  WorkerId id_;
  Time next_sample_;
  Handlers handlers_;
  bool alive_ = true;
  bool holds_state_ = false;
  Generation aborted_;
  StepId sampled_{0};
};

}  // namespace elasticrun::bench
