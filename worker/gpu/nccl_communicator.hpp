// One communicator of NCCL, from its forming to its end, with every wait bounded.
//
// It is made in the non-blocking mode: NCCL's calls return at once, and we look at it, and at an
// event behind what was enqueued, until it is through. So whoever waits sees a halt within a
// millisecond and stops the work itself; no thread ever calls NCCL on a communicator that another
// one is using. What cannot be relied on, ncclCommAbort coming back, is given to a thread of its
// own and a limit.
//
// Why never ncclCommDestroy or ncclCommFinalize: they wait for the other ranks, which may be gone.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "worker/gpu/gpu.hpp"
#include "worker/gpu/nccl_path.hpp"

namespace elasticrun::worker::gpu {

struct NcclLimits {
  // Of forming a communicator: peers may still be starting theirs.
  std::chrono::milliseconds form{60'000};
  // Of stopping the work of one, or giving it up. Past it the GPU counts as lost.
  std::chrono::milliseconds stop{10'000};
};

// Says to whoever waits that it is to end. Any thread.
class Halt {
 public:
  void set() noexcept;
  bool is_set() const { return set_; }
  // Between two looks at something: briefly at first, for a collective takes microseconds, then
  // without a core of its own, for a failure takes seconds to be noticed.
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
  ~Communicator() { release(); }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Each once, one of them; throws GroupBroken. Collective over the ranks of the new one.
  void init(int rank, int size, std::vector<nccl::UniqueId> ids);
  // The parent has been halted; it is used up, whether this succeeds or not.
  void shrink(Communicator& parent, std::vector<int> excluded, bool work_was_stopped);

  // Enqueues with `operation(comm)` on `stream` and waits until all of it is done, there. Throws
  // GroupBroken; then nothing of it is under way any more.
  template <class Operation>
  void run(const char* what, cuda::Stream stream, std::chrono::milliseconds limit,
           Operation&& operation) {
    const std::lock_guard lock(in_use_);
    begin();
    finish(what, stream, operation(comm_), in(limit));
  }

  // Ends what waits here within milliseconds; later calls fail. Any thread, any number of times.
  void halt() noexcept { halt_.set(); }
  bool halted() const { return halt_.is_set(); }
  // Gives everything back, at most in the limit. Ends what is under way.
  void release() noexcept;

  ParentHealth health() const;  // waits for a call that is under way
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
  void stop(GpuEvent& behind, bool keep) noexcept;
  void give_up() noexcept;  // in_use_ held
  [[noreturn]] void fail(const char* what, nccl::Status status);

  const std::shared_ptr<Gpu> gpu_;
  const NcclLimits limits_;
  mutable std::mutex in_use_;
  Halt halt_;
  nccl::Comm comm_ = nullptr;
  bool stopped_ = false;
  int rank_ = -1;
  int size_ = 0;
  std::uint64_t id_ = 0;
};

}  // namespace elasticrun::worker::gpu
