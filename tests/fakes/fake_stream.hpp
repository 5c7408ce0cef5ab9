// A stream of the fake: a thread that does its tasks in order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

struct CUstream_st {
  explicit CUstream_st(std::atomic<int>& all) : pending_of_all(&all), thread([this] { run(); }) {}
  ~CUstream_st() {
    {
      const std::lock_guard lock(mutex);
      ending = true;
      wake.notify_one();
    }
    thread.join();
  }
  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      wake.wait(lock, [this] { return ending || !tasks.empty(); });
      if (tasks.empty()) return;
      const auto task = std::move(tasks.front());
      tasks.pop_front();
      lock.unlock();
      task();
      count(-1);
      lock.lock();
    }
  }

  // Tasks that wait or run, on this stream and on all of its context.
  void count(int by) {
    pending += by;
    *pending_of_all += by;
  }

  std::mutex mutex;
  std::condition_variable wake;
  std::deque<std::function<void()>> tasks;
  std::atomic<int> pending = 0;
  std::atomic<int>* const pending_of_all;
  bool ending = false;
  std::thread thread;
};
