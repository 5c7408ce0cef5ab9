// Several ranks in one process, each a thread with its own data plane, and the exchange of
// addresses that the control channel does in a real job.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "worker/collective/gloo_group.hpp"
#include "worker/gpu/gpu.hpp"

namespace elasticrun::worker::testing {

// The GPU of this rank, which is a thread; null: it has none.
inline thread_local std::shared_ptr<gpu::Gpu> own_gpu;

// Numbers of this rank, on its GPU if it has one. The memory of the fake GPU can be accessed
// directly while no operation on it is under way.
template <class T>
class Numbers : public std::span<T> {
 public:
  explicit Numbers(std::size_t count) {
    if (own_gpu) {
      device_ = std::make_unique<gpu::GpuBuffer>(*own_gpu);
      static_cast<std::span<T>&>(*this) = {
          reinterpret_cast<T*>(device_->reserve(count * sizeof(T))), count};
      std::fill(this->begin(), this->end(), T{});
    } else {
      host_.resize(count);
      static_cast<std::span<T>&>(*this) = host_;
    }
  }
  std::vector<T> copy() const { return {this->begin(), this->end()}; }

 private:
  std::vector<T> host_;
  std::unique_ptr<gpu::GpuBuffer> device_;
};

// Hands each rank the values of all ranks, any number of times. A rank that fails ends it for all.
class Exchange {
 public:
  explicit Exchange(int size) : size_(static_cast<std::size_t>(size)), values_(size_) {}

  std::vector<std::string> operator()(int rank, std::string value) {
    std::unique_lock lock(mutex_);
    const std::size_t round = round_;
    values_[static_cast<std::size_t>(rank)] = std::move(value);
    if (++given_ == size_) {
      result_ = values_;
      given_ = 0;
      ++round_;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return round_ != round || failed_; });
    if (round_ == round) throw collective::GroupBroken("another rank has failed");
    return result_;
  }
  void fail() {
    const std::lock_guard lock(mutex_);
    failed_ = true;
    changed_.notify_all();
  }

 private:
  const std::size_t size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> values_, result_;
  std::size_t given_ = 0;
  std::size_t round_ = 0;
  bool failed_ = false;
};

using PlaneMaker = std::function<std::unique_ptr<collective::DataPlane>()>;
// The data plane of the tests; a test program can replace it to run them over another one.
inline PlaneMaker usual_planes = [] { return collective::make_gloo_plane({}); };

// Calls body(rank, plane, exchange) on one thread per rank; rethrows the exception of the lowest
// rank.
inline void run_planes(int size,
                       const std::function<void(int, collective::DataPlane&, Exchange&)>& body,
                       const PlaneMaker& make = usual_planes) {
  Exchange exchange(size);
  std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(size));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] {
        try {
          const auto plane = make();
          body(rank, *plane, exchange);
        } catch (...) {
          thrown[static_cast<std::size_t>(rank)] = std::current_exception();
          exchange.fail();
        }
      });
  }
  for (const std::exception_ptr& error : thrown)
    if (error) std::rethrow_exception(error);
}

inline std::unique_ptr<collective::Group> form(collective::DataPlane& plane, Exchange& exchange,
                                               int rank, int size) {
  auto group = plane.create({.rank = rank, .size = size});
  group->connect(exchange(rank, group->publish()));
  return group;
}

// Calls body(group) on every rank of a formed group.
inline void run_ranks(int size, const std::function<void(collective::Group&)>& body,
                      const PlaneMaker& make = usual_planes) {
  run_planes(
      size,
      [&](int rank, collective::DataPlane& plane, Exchange& exchange) {
        const auto group = form(plane, exchange, rank, size);
        body(*group);
        exchange(rank, "");  // no rank may close its connections before the slower ones are done
      },
      make);
}

// Lets other threads run for a while, so that an abort hits at different moments.
inline void let_pass(int turns) {
  for (int i = 0; i < turns; ++i) std::this_thread::yield();
}

}  // namespace elasticrun::worker::testing
