// See work_queue.hpp.
#include "worker/training/work_queue.hpp"

#include <utility>

#include "base/quiet_thread.hpp"

namespace elasticrun::worker::training {

WorkQueue::~WorkQueue() {
  cancel();
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void WorkQueue::push(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (error_) return;
  if (!thread_.joinable()) thread_ = start_quiet_thread(name_, [this] { run(); });
  waiting_.push_back(std::move(work));
  if (!working_) changed_.notify_all();
}

void WorkQueue::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !working_ && waiting_.empty(); });
  if (const std::exception_ptr error = std::exchange(error_, nullptr)) {
    lock.unlock();
    std::rethrow_exception(error);
  }
}

void WorkQueue::cancel() {
  std::unique_lock lock(mutex_);
  waiting_.clear();
  changed_.wait(lock, [this] { return !working_; });
  error_ = nullptr;
}

void WorkQueue::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
    if (stop_) return;
    const std::function<void()> work = std::move(waiting_.front());
    waiting_.pop_front();
    working_ = true;
    lock.unlock();
    std::exception_ptr error;
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    working_ = false;
    if (error) {
      error_ = error;
      waiting_.clear();
    }
    if (waiting_.empty()) changed_.notify_all();
  }
}

}  // namespace elasticrun::worker::training
