// See work_queue.hpp.
#include "worker/training/work_queue.hpp"

#include <stdexcept>
#include <system_error>
#include <utility>

#include "base/quiet_thread.hpp"

namespace elasticrun::worker::training {

// Whoever is woken takes the lock at once; so it is let go of before.

WorkQueue::~WorkQueue() {
  cancel();
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  more_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void WorkQueue::push(std::function<void()> work) {
  std::unique_lock lock(mutex_);
  if (error_) return;
  if (!thread_.joinable()) {
    try {
      thread_ = start_quiet_thread(name_, [this] { run(); });
    } catch (const std::system_error& error) {  // RLIMIT_NPROC, or pids.max of a container
      error_ = std::make_exception_ptr(std::runtime_error(
          "no thread for reductions beside the program: " + error.code().message()));
      return;
    }
  }
  waiting_.push_back(std::move(work));
  const bool sleeps = !working_;
  lock.unlock();
  if (sleeps) more_.notify_one();
}

void WorkQueue::wait() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return !working_ && waiting_.empty(); });
  if (const std::exception_ptr error = std::exchange(error_, nullptr)) {
    lock.unlock();
    std::rethrow_exception(error);
  }
}

void WorkQueue::cancel() {
  std::unique_lock lock(mutex_);
  waiting_.clear();
  done_.wait(lock, [this] { return !working_; });
  error_ = nullptr;
}

void WorkQueue::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    more_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
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
    if (!waiting_.empty()) continue;
    lock.unlock();
    done_.notify_all();
    lock.lock();
  }
}

}  // namespace elasticrun::worker::training
