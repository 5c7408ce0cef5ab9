// Does pieces of work one after the other on a thread of its own (a driver).
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace elasticrun::worker::training {

class WorkQueue {
 public:
  // `name` is that of the thread, which is started for the first piece.
  explicit WorkQueue(const char* name) : name_(name) {}
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // Any thread. A piece of work may throw: those behind it are dropped, until wait() or cancel().
  void push(std::function<void()> work);
  // Waits until all is done, or a piece has thrown; throws the same.
  void wait();
  // Drops what has not begun, and waits for the piece that has.
  void cancel();

 private:
  void run();

  const char* const name_;
  mutable std::mutex mutex_;
  std::condition_variable more_, done_;  // for the thread; for those who wait
  std::deque<std::function<void()>> waiting_;
  bool working_ = false;
  bool stop_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace elasticrun::worker::training
