// One NCCL communicator, from its forming to its end, with every wait bounded.
//
// It is made in the non-blocking mode: NCCL's calls return at once, and the calling thread polls
// the communicator, and an event after what was enqueued, until the work is done. So a waiting
// thread sees a halt within a millisecond and stops the work itself; no thread ever calls NCCL on a
// communicator that another thread is using.
//
// ncclCommAbort stops the work on the GPU at once and takes half a second to come back, for threads
// of NCCL's sleep in poll(2) for as long; it may also never come back. So it runs on a thread of
// its own, and the next communicator is formed meanwhile. Only those wait for it who have no other
// way to know that the work has stopped, and the destructor.
//
// Why never ncclCommDestroy or ncclCommFinalize: they wait for the other ranks, which may be gone.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "worker/gpu/gpu.hpp"
#include "worker/gpu/nccl_path.hpp"

namespace elasticrun::worker::gpu {

struct NcclLimits {
  // Time limit for forming a communicator: peers may still be starting to form theirs.
  std::chrono::milliseconds form{60'000};
  // Time limit for stopping a communicator's work, and for its abort to come back. After that the
  // GPU counts as lost.
  std::chrono::milliseconds stop{10'000};
};

// A flag that ends the waits of another thread. Any thread.
class Halt {
 public:
  void set() noexcept;
  bool is_set() const { return set_; }
  // Pauses between two polls: briefly at first, for a collective takes microseconds, later asleep,
  // for a failure takes seconds to be noticed. `looks` counts the polls.
  void rest(int& looks) const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::atomic<bool> set_{false};
};

class Communicator {
 public:
  Communicator(std::shared_ptr<Gpu> gpu, NcclLimits limits)
      : gpu_(std::move(gpu)), limits_(limits) {}
  ~Communicator();  // waits until it has ended
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // init or shrink is called, once. Both are collective over the ranks of the new communicator and
  // throw GroupBroken.
  void init(int rank, int size, std::vector<nccl::UniqueId> ids);
  // The parent has been halted; it cannot be used afterwards, even when this fails.
  void shrink(Communicator& parent, std::vector<int> excluded);

  // Calls operation(comm), which enqueues on `stream`, and waits until the GPU has done that work,
  // at most for `limit`. Throws GroupBroken; then none of the work is under way any more.
  template <class Operation>
  void run(const char* what, cuda::Stream stream, std::chrono::milliseconds limit,
           Operation&& operation) {
    const std::lock_guard lock(in_use_);
    begin();
    finish(what, stream, operation(comm_), in(limit));
  }

  // Ends waiting calls within milliseconds; later calls fail. Any thread, any number of times.
  void halt() noexcept { halt_.set(); }
  bool halted() const { return halt_.is_set(); }
  // Ends the work under way; what NCCL has is freed in the background.
  void release() noexcept;
  // After release(): whether NCCL has freed all it had. That may take as long as work of a later
  // communicator on the GPU.
  bool ended() const noexcept;

  ParentHealth health() const;  // waits for a call that is under way on another thread
  std::uint64_t id() const { return id_; }
  int rank() const { return rank_; }
  int size() const { return size_; }

 private:
  using Deadline = std::chrono::steady_clock::time_point;
  static Deadline in(std::chrono::milliseconds limit) {
    return std::chrono::steady_clock::now() + limit;
  }

  void begin() const;
  void finish(const char* what, cuda::Stream stream, nccl::Status status, Deadline deadline);
  nccl::Status settled(nccl::Comm asked, nccl::Status status, Deadline deadline) const;
  void stop(GpuEvent& behind) noexcept;
  void give_up() noexcept;            // in_use_ held
  void await_abort() const noexcept;  // or the GPU is lost
  [[noreturn]] void fail(const char* what, nccl::Status status);

  const std::shared_ptr<Gpu> gpu_;
  const NcclLimits limits_;
  mutable std::mutex in_use_;
  Halt halt_;
  nccl::Comm comm_ = nullptr;
  std::future<void> abort_;  // set once comm_ has been given up
  int rank_ = -1;
  int size_ = 0;
  std::uint64_t id_ = 0;
};

}  // namespace elasticrun::worker::gpu
