// A simulated worker: the real membership client, and a program that trains a digest instead of
// weights.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "simulate/invariants.hpp"
#include "simulate/plane.hpp"
#include "simulate/queue.hpp"
#include "simulate/scene.hpp"
#include "worker/member.hpp"

namespace elasticrun::simulate {

// What all processes of a run share.
struct Stage {
  const Scene& scene;
  Queue& queue;
  Rng& rng;
  Plane& plane;
  Invariants& invariants;
  std::map<Generation, std::vector<Model>> holders;  // what each member that has the state sends
  std::set<WorkerId> unreachable;                    // for large messages: no state arrives there

  Duration between_us(int low, int high) {
    return std::chrono::microseconds(
        low + static_cast<int>(rng.below(static_cast<std::uint64_t>(high - low + 1))));
  }
};

class Process : public std::enable_shared_from_this<Process> {
 public:
  struct Handlers {
    std::function<void(wire::FromWorker)> send;
    std::function<void(int code, int signal)> exited;
  };
  Process(Stage& stage, WorkerId id, Handlers handlers);

  void begin();  // after fork: starts up, joins, trains
  void receive(const wire::ToWorker& letter);
  void signal(int number);
  void die(int code, int signal);
  void freeze() { frozen_ = true; }
  void thaw();
  void hang() { hangs_ = true; }  // its next compute never ends
  void slow_down(int factor) { slowness_ = factor; }
  void leave();

  bool alive() const { return alive_; }
  bool frozen() const { return frozen_; }
  bool in_train() const { return in_train_; }
  bool finished() const { return finished_; }
  WorkerId id() const { return id_; }
  const worker::Member& member() const { return member_; }
  const Model& model() const { return model_; }

 private:
  void later(Duration delay, std::function<void()> what);
  void now_or_thawed(std::function<void()> what);
  void do_outbox();
  void train();
  void pump();
  void enter();
  void entered(const Model& received);
  bool transfer_fails();
  void step();
  void reduced(Generation generation, std::optional<double> votes);
  void applied(Generation generation);
  void end_call();
  void sample();
  void phase(const char* name);

  Stage& stage_;
  WorkerId id_;
  Handlers handlers_;
  worker::Member member_;
  Model model_;
  bool alive_ = true, frozen_ = false, hangs_ = false;
  int slowness_ = 1;
  Duration computed_{};  // since the last sample
  bool in_train_ = false, busy_ = false, finished_ = false;
  std::int64_t call_ = 0;
  int index_ = 0;  // of the next collective in this group
  const char* phase_ = "idle";
  Time phase_since_{};
  std::int64_t steps_ = 0;  // since the last sample
  std::int64_t samples_ = 0;
  std::int64_t share_ = 0;  // of the step under way
  std::vector<std::function<void()>> deferred_;
};

}  // namespace elasticrun::simulate
