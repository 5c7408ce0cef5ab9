// A simulated worker: the real membership client, and a program that trains a digest instead of
// weights. The thread that trains and the thread that forms groups can each hang alone, and a
// frozen process stops altogether; the control thread answers as long as the process runs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "simulate/faults/bucket_thread.hpp"
#include "simulate/faults/invariants.hpp"
#include "simulate/faults/plane.hpp"
#include "simulate/faults/scene.hpp"
#include "simulate/faults/stepping.hpp"
#include "simulate/queue.hpp"
#include "worker/core/member.hpp"

namespace elasticrun::simulate::faults {

// What all processes of a run share.
struct Stage {
  const Scene& scene;
  Queue& queue;
  Rng& rng;
  Plane& plane;
  Invariants& invariants;
  Stepping& stepping;
  std::map<Generation, std::vector<Model>> holders;  // the models that the state's holders send
  struct Spoiled {
    int times = 0;          // transfers that will still fail
    Generation generation;  // the last one in which a transfer failed
  };
  std::map<WorkerId, Spoiled> spoiled;  // workers to which state transfers fail
  // What is in the folder of --save, by folder: what members have written, and whole saves.
  std::map<std::string, Model> drafts;
  std::map<std::string, Model> saves;

  Duration between_us(int low, int high) {
    return std::chrono::microseconds(
        low + static_cast<int>(rng.below(static_cast<std::uint64_t>(high - low + 1))));
  }
};

class Process : public std::enable_shared_from_this<Process> {
 public:
  struct Handlers {
    std::function<void(wire::FromWorker)> send;
    std::function<void(int code, int signal)> dies, exited;
  };
  Process(Stage& stage, WorkerId id, Handlers handlers);

  void begin();  // as after fork: starts up, joins, trains
  void receive(const wire::ToWorker& message);
  void signal(int number);
  void die(int code, int signal);
  void freeze() { frozen_ = true; }
  void thaw();
  // When the worker next reaches that point (not Point::now), the thread there hangs for good, or,
  // with `dies`, the whole process dies.
  void strike(Point in, bool dies) { struck_ = Strike{in, dies}; }
  void slow_down(int factor) { slowness_ = factor; }
  void leave();  // at the end of its step

  bool alive() const { return alive_; }
  // It is dead, but hangs in the kernel, which does not say so for a long time.
  bool kept() const { return kept_; }
  bool frozen() const { return frozen_; }
  bool hangs() const { return hangs_ || former_hangs_; }
  bool is_struck() const { return hangs() || struck_; }  // has been struck, or will be
  bool in_train() const { return in_train_; }
  bool finished() const { return finished_; }
  WorkerId id() const { return id_; }
  const worker::core::Member& member() const { return member_; }
  const Model& model() const { return model_; }

 private:
  void later(Duration delay, std::function<void()> what);
  void now_or_thawed(std::function<void()> what);
  void do_outbox();
  void train();
  void leave_now();
  void end_if_left();
  void pump();
  void enter();
  void entered(const Model& received);
  void discard();
  void broken(const char* what, const std::vector<worker::collective::PeerTrouble>& troubles);
  bool transfer_fails();
  void step();
  bool ends_epoch() const;
  void end_epoch();
  void compute_gradients(Duration time);
  void reduce_bucket(const BucketThread::Start& start);
  void reduce(Generation generation);
  void reduce_votes(Generation generation, const Plane::Votes& votes);
  void reduced(Generation generation, const Plane::Ended& ended);
  void applied(Generation generation);
  void save(const worker::core::SaveOrder& order);
  void end_call();
  void sample();
  void phase(const char* name);
  // Strikes the worker if it is to be struck at that point; if true, the caller must return.
  bool caught(Point in);
  void form(const worker::collective::GroupSpec& spec);
  void connect(Generation generation);

  Stage& stage_;
  WorkerId id_;
  Handlers handlers_;
  worker::core::Member member_;
  Model model_;
  struct Strike {
    Point in;
    bool dies = false;
  };
  std::optional<Strike> struck_;
  bool alive_ = true, kept_ = false, frozen_ = false, hangs_ = false, former_hangs_ = false;
  std::map<Generation, wire::World> worlds_;  // worlds it was ordered to form
  std::map<Generation, Duration> connect_limits_;
  int slowness_ = 1;
  Duration computed_{};  // compute time since the last sample
  bool in_train_ = false, busy_ = false, finished_ = false, wants_to_leave_ = false;
  std::int64_t call_ = 0;
  std::int64_t epochs_ended_ = 0;  // epochs of this train call for which on_epoch has run
  BucketThread bucket_thread_;
  Generation step_world_;  // the world of the step under way
  int index_ = 0;          // index of the next collective in this group
  const char* phase_ = "idle";
  Time phase_since_{};
  std::int64_t steps_ = 0;  // since the last sample
  std::int64_t samples_ = 0;
  std::int64_t share_ = 0;   // samples of this worker in the step under way
  std::uint64_t moved_ = 0;  // reported as transfer_bytes; grows with each completed transfer
  std::vector<std::function<void()>> deferred_;
};

}  // namespace elasticrun::simulate::faults
