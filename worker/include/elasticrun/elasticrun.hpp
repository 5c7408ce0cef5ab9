// elasticrun.hpp: elastic training in C++, a header over the C interface (elasticrun.h).
//
//     elasticrun::Job job;
//     job.state("weights", weights).state("momentum", momentum).gradients("grads", grads);
//     job.train({.samples = 60'000, .epochs = 5, .batch = 32, .base_batch = 32},
//         [&](elasticrun::Step& step) { model.backward(step.samples(), grads); },
//         [&](elasticrun::Step& step) { model.apply(grads, 0.1 * step.lr_factor()); });
//
// Compute leaves the mean gradient over step.samples(); apply finds the mean over the global batch;
// the end of apply commits the step. Compute must not change registered state, and its randomness
// must come from (seed, step, sample): a step may be repeated. What they throw comes out of train.
//
// Every status of the C interface other than OK becomes one of the four exceptions in step.hpp, and
// what() is its error text. elasticrun.h says for each function when it returns which status.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "elasticrun/elasticrun.h"
#include "elasticrun/state_source.hpp"
#include "elasticrun/step.hpp"

namespace elasticrun {

namespace detail {

// Makes an uncaught Evicted end the process with exit code 0 instead of an abort.
inline void end_quietly_when_evicted() {
  static const std::terminate_handler previous = std::set_terminate([] {
    try {
      if (const std::exception_ptr thrown = std::current_exception())
        std::rethrow_exception(thrown);
    } catch (const Evicted&) {
      std::fflush(nullptr);
      std::_Exit(0);
    } catch (...) {
    }
    previous();
  });
}

}  // namespace detail

// The element types of gradients, buffers and all_reduce.
template <class T>
concept Real = std::is_same_v<T, float> || std::is_same_v<T, double>;

template <Real T>
inline constexpr elasticrun_type type_of =
    std::is_same_v<T, float> ? ELASTICRUN_FLOAT32 : ELASTICRUN_FLOAT64;

struct TrainOptions {
  std::int64_t samples = 0;  // number of samples in one epoch, > 0
  std::int64_t epochs = 1;   // number of epochs, > 0
  std::int64_t batch = 0;    // samples one worker computes efficiently; 0: --batch, --max-batch
  // Global batch the learning rate was tuned for. 0: the first one, which depends on the number of
  // workers at the start; so give it where lr_factor is used.
  std::int64_t base_batch = 0;
  std::int64_t micro_batch = 0;   // most samples in one call of compute; 0: no limit
  std::uint64_t seed = 0;         // seed of the order of the samples
  std::int64_t bucket_bytes = 0;  // reduce in buckets while computing (step.ready); 0: afterwards
  std::int64_t epoch_steps = 0;   // in a loop of begin, 1: the end of an epoch is a step
};

// A job, opened by the constructor and closed by the destructor; see elasticrun_open and _close.
class Job {
 public:
  // Throws Failed when the job cannot be opened.
  Job() {
    detail::end_quietly_when_evicted();
    const elasticrun_status status = elasticrun_open(&job_);
    if (status == ELASTICRUN_OK) return;
    const std::string text = job_ ? elasticrun_error(job_) : "out of memory";
    elasticrun_close(job_);
    throw Failed(text);
  }
  ~Job() { elasticrun_close(job_); }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Registration of what survives a change of the world. Each call returns the job and throws
  // Misuse: a name that is empty or taken, memory on another GPU, mixed types, or after the first
  // train or start. A registered vector must outlive the job and keep its memory and its size,
  // which is checked in each step (Misuse); for memory that a vector hands on, register a span.
  //
  // state: memory that apply changes and that newcomers receive.
  Job& state(const char* name, void* data, std::size_t bytes) {
    check(elasticrun_state(job_, name, data, bytes));
    return *this;
  }
  template <class T, std::size_t extent>
  requires std::is_trivially_copyable_v<T> Job& state(const char* name, std::span<T, extent> data) {
    return state(name, data.data(), data.size_bytes());
  }
  template <class T>
  Job& state(const char* name, std::vector<T>& data) {
    state(name, std::span<T>(data));
    return watch(name, data);
  }
  // gradients: compute leaves the mean over its own samples, apply finds that of the global batch.
  template <Real T, std::size_t extent>
  Job& gradients(const char* name, std::span<T, extent> data) {
    check(elasticrun_gradients(job_, name, data.data(), type_of<T>, data.size()));
    return *this;
  }
  template <Real T>
  Job& gradients(const char* name, std::vector<T>& data) {
    gradients(name, std::span<T>(data));
    return watch(name, data);
  }
  // Numbers of other types: `count` elements at `data`, such as bfloat16.
  Job& gradients(const char* name, void* data, elasticrun_type type, std::size_t count) {
    check(elasticrun_gradients(job_, name, data, type, count));
    return *this;
  }
  Job& buffers(const char* name, void* data, elasticrun_type type, std::size_t count) {
    check(elasticrun_buffers(job_, name, data, type, count));
    return *this;
  }
  // buffers: running statistics, reduced like gradients and carried to newcomers like state.
  template <Real T, std::size_t extent>
  Job& buffers(const char* name, std::span<T, extent> data) {
    check(elasticrun_buffers(job_, name, data.data(), type_of<T>, data.size()));
    return *this;
  }
  template <Real T>
  Job& buffers(const char* name, std::vector<T>& data) {
    buffers(name, std::span<T>(data));
    return watch(name, data);
  }

  // From now on the state is what is registered and what this source lists; also between two steps.
  // Throws Misuse when list or make_room is missing, and inside a step; then nothing has changed.
  Job& state_source(StateSource source) {
    std::swap(source_, source);
    const elasticrun_source c{sizeof c, source_.list ? &Job::list : nullptr,
                              source_.make_room ? &Job::make_room : nullptr,
                              source_.take_objects ? &Job::take_objects : nullptr, this};
    const elasticrun_status status = elasticrun_state_source(job_, &c);
    if (status == ELASTICRUN_MISUSE) std::swap(source_, source);
    check(status);
    return *this;
  }

  // Sets the CUDA stream on which compute and apply work; null is the default stream. Returns the
  // job; throws Misuse inside a callback. See elasticrun.h.
  Job& stream(void* stream) {
    check(elasticrun_stream(job_, stream));
    return *this;
  }

  // Sets the function to call on every member after the last step of each epoch, between two steps:
  // evaluate, save, print. It takes the world and, optionally, the number of epochs done. It is
  // called again for an epoch when the world changes at its end, and it must not change registered
  // state; see elasticrun.h. Throws Misuse inside a callback.
  template <class Callback>
  void on_epoch(Callback callback) {
    if constexpr (std::is_invocable_v<Callback&, const World&, std::int64_t>)
      epoch_ = std::move(callback);
    else
      epoch_ = [callback = std::move(callback)](const World& world, std::int64_t) mutable {
        callback(world);
      };
    check(elasticrun_on_epoch(
        job_,
        [](std::int64_t epochs_done, void* self) {
          auto& job = *static_cast<Job*>(self);
          return job.guarded([&] {
            job.epoch_(World(job.job_), epochs_done);
            job.check_vectors();
          });
        },
        this));
  }

  // Trains until all samples are used; returns in the members of the final world. Throws Evicted in
  // a worker that is out of the world, Misuse and Failed (see elasticrun_train), and what a
  // callback threw.
  void train(const TrainOptions& options, std::function<void(Step&)> compute,
             std::function<void(Step&)> apply) {
    compute_ = std::move(compute);
    apply_ = std::move(apply);
    check_vectors();
    const elasticrun_train_options c = for_c(options);
    check(elasticrun_train(job_, &c, &Job::call<&Job::compute_>, &Job::call<&Job::apply_>, this));
  }

  // What train does, as a loop of the program; elasticrun.h has the whole of it. begin begins a
  // call of train; next blocks until this worker is in a world, and gives nothing when all samples
  // are used; reduce is false when the step did not happen, and next gives it again; commit ends
  // it. They throw Evicted, Misuse and Failed.
  void begin(const TrainOptions& options) {
    const elasticrun_train_options c = for_c(options);
    loop(elasticrun_begin, &c);
  }
  std::optional<Step> next() {
    elasticrun_step* step = nullptr;
    loop(elasticrun_next, &step);
    return step ? std::optional<Step>(step) : std::nullopt;
  }
  bool reduce() {
    check_vectors();
    const elasticrun_status status = elasticrun_reduce(job_);
    if (status != ELASTICRUN_WORLD_CHANGED) check(status);
    return status == ELASTICRUN_OK;
  }

  // For prefetching: at most `count` sample indices, the next ones of this worker if the world
  // stays as it is; none outside train.
  std::vector<std::uint64_t> upcoming(std::size_t count) const {
    std::vector<std::uint64_t> samples(count);
    samples.resize(elasticrun_upcoming(job_, samples.data(), count));
    return samples;
  }

  // A view of the present world, which follows its changes.
  World world() const { return World(job_); }

  // A loop of one's own; see elasticrun.h. all_reduce, broadcast, barrier, commit and finish throw
  // WorldChanged; these and start throw Evicted, Failed and Misuse. all_reduce and barrier also
  // stand at the end of an epoch in a loop of begin with epoch_steps.
  //
  // Blocks until this worker is in a world and has its state.
  void start() { loop(elasticrun_start); }
  // Sums each element over the world, in place.
  template <Real T, std::size_t extent>
  void all_reduce(std::span<T, extent> data) {
    loop(elasticrun_all_reduce, data.data(), type_of<T>, data.size());
  }
  template <Real T>
  void all_reduce(std::vector<T>& data) {
    all_reduce(std::span<T>(data));
  }
  template <Real T>
  void all_reduce(T& number) {
    all_reduce(std::span<T>(&number, 1));
  }
  // The same without waiting; the memory is the library's until all_reduce_wait has returned or
  // thrown.
  template <Real T, std::size_t extent>
  void all_reduce_start(std::span<T, extent> data) {
    loop(elasticrun_all_reduce_start, data.data(), type_of<T>, data.size());
  }
  void all_reduce_wait() { loop(elasticrun_all_reduce_wait); }
  // Copies `bytes` bytes from rank `root` to all ranks.
  void broadcast(void* data, std::size_t bytes, int root) {
    loop(elasticrun_broadcast, data, bytes, root);
  }
  // Blocks until all ranks have called it.
  void barrier() { loop(elasticrun_barrier); }
  // Adds `count` to the samples that this worker has computed in the step under way. Throws Misuse
  // when count is not in 0 to 2^40.
  void samples(std::int64_t count) { loop(elasticrun_samples, count); }
  // Makes the step part of the state of all; rank and size may differ afterwards.
  void commit() { loop(elasticrun_commit); }
  // After the last step: returns when every member has called it.
  void finish() { loop(elasticrun_finish); }
  // Number of committed steps in the state that this worker holds, which is also the number of the
  // next step; 0 before the first world. Does not throw.
  std::int64_t committed() const { return elasticrun_committed(job_); }
  // Leaves the world for good; the others go on. Throws Misuse inside a callback.
  void leave() { check(elasticrun_leave(job_)); }

 private:
  static elasticrun_train_options for_c(const TrainOptions& o) {
    return {sizeof(elasticrun_train_options),
            o.samples,
            o.epochs,
            o.batch,
            o.base_batch,
            o.micro_batch,
            o.seed,
            o.bucket_bytes,
            o.epoch_steps};
  }

  using StepCallback = std::function<void(Step&)>;

  template <StepCallback Job::*callback>
  static int call(elasticrun_step* step, void* self) {
    auto& job = *static_cast<Job*>(self);
    return job.guarded([&] {
      Step view(step);
      (job.*callback)(view);
      job.check_vectors();
    });
  }

  static int list(elasticrun_listing* listing, void* self) {
    auto& job = *static_cast<Job*>(self);
    return job.guarded([&] {
      Listing view(listing);
      job.source_.list(view);
    });
  }
  static int make_room(const elasticrun_array* wanted, std::size_t count, void* self) {
    auto& job = *static_cast<Job*>(self);
    return job.guarded([&] { job.source_.make_room({wanted, count}); });
  }
  static int take_objects(const void* data, std::size_t bytes, void* self) {
    auto& job = *static_cast<Job*>(self);
    return job.guarded([&] {
      job.source_.take_objects({static_cast<const std::byte*>(data), bytes});
    });
  }

  // A registered vector: its address, and the memory it held when it was registered.
  struct Watched {
    std::string name;
    const void* vector;
    std::span<const std::byte> (*memory_of)(const void* vector);
    std::span<const std::byte> registered;
  };

  template <class T>
  Job& watch(const char* name, const std::vector<T>& data) {
    const auto memory_of = [](const void* vector) {
      return std::as_bytes(std::span(*static_cast<const std::vector<T>*>(vector)));
    };
    watched_.push_back({name, &data, memory_of, memory_of(&data)});
    return *this;
  }

  // Called before the library uses the memory that registered vectors held. Throws Misuse.
  void check_vectors() const {
    for (const Watched& one : watched_) {
      const auto now = one.memory_of(one.vector);
      if (now.data() == one.registered.data() && now.size() == one.registered.size()) continue;
      throw Misuse("'" + one.name + "': the vector that was registered has " +
                   (now.size() == one.registered.size()
                        ? "moved its memory"
                        : "changed its size (" + std::to_string(one.registered.size()) + " to " +
                              std::to_string(now.size()) + " bytes)") +
                   "; give it its size before it is registered, and leave it");
    }
  }

  // Makes a call of a loop of one's own; throws as check does.
  template <class Call, class... Arguments>
  void loop(Call* function, Arguments... arguments) {
    check_vectors();
    check(function(job_, arguments...));
  }

  // Runs a callback for C: keeps what it throws for check(). Returns 0, or 1 when it threw.
  template <class F>
  int guarded(F&& body) noexcept {
    try {
      body();
      return 0;
    } catch (...) {
      thrown_ = std::current_exception();
      return 1;
    }
  }

  // Throws the exception of a status other than OK, or what a callback threw.
  void check(elasticrun_status status) {
    if (status == ELASTICRUN_OK) return;
    if (status == ELASTICRUN_CALLBACK && thrown_)
      std::rethrow_exception(std::exchange(thrown_, nullptr));
    const char* text = elasticrun_error(job_);
    if (status == ELASTICRUN_WORLD_CHANGED) throw WorldChanged(text);
    if (status == ELASTICRUN_EVICTED) throw Evicted(text);
    if (status == ELASTICRUN_MISUSE) throw Misuse(text);
    throw Failed(text);
  }

  elasticrun_job* job_ = nullptr;
  StepCallback compute_, apply_;
  std::function<void(const World&, std::int64_t)> epoch_;
  StateSource source_;
  std::exception_ptr thrown_;
  std::vector<Watched> watched_;
};

}  // namespace elasticrun
