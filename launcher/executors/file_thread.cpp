// See file_thread.hpp.
#include "launcher/executors/file_thread.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

#include "base/quiet_thread.hpp"
#include "net/sockets.hpp"

namespace elasticrun::launcher::executors {

namespace asio = boost::asio;

// What the thread shares with the FileThread. It refers to nothing of the io_context, which the
// thread may outlive.
struct FileThread::Thread {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<Answer()>> calls;
  std::deque<Answer> answers;
  bool over = false;
  net::Fd answered{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return over || !calls.empty(); });
      if (over) return;
      const auto call = std::move(calls.front());
      calls.pop_front();
      lock.unlock();
      Answer answer = call();
      lock.lock();
      answers.push_back(std::move(answer));
      ::eventfd_write(answered.get(), 1);
    }
  }
};

struct FileThread::State {
  explicit State(asio::io_context& io)
      : answered(io, ::fcntl(thread->answered.get(), F_DUPFD_CLOEXEC, 3)) {}

  const std::shared_ptr<Thread> thread = std::make_shared<Thread>();
  asio::posix::stream_descriptor answered;
  std::size_t awaited = 0;  // number of answers still to run
};

FileThread::FileThread(asio::io_context& io) : state_(std::make_shared<State>(io)) {
  std::thread file_thread =
      start_quiet_thread("er-files", [thread = state_->thread] { thread->run(); });
  file_thread.detach();
}

FileThread::~FileThread() {
  boost::system::error_code ignored;
  state_->answered.close(ignored);
  const std::lock_guard lock(state_->thread->mutex);
  state_->thread->over = true;
  state_->thread->changed.notify_one();
}

void FileThread::run(std::function<Answer()> call) {
  if (state_->awaited++ == 0) await_answers(state_);
  const std::lock_guard lock(state_->thread->mutex);
  state_->thread->calls.push_back(std::move(call));
  state_->thread->changed.notify_one();
}

bool FileThread::ends_within(Duration limit, std::function<void()> call) {
  const auto task = std::make_shared<std::packaged_task<void()>>(std::move(call));
  std::future<void> ended = task->get_future();
  run([task]() -> Answer {
    (*task)();
    return [] {};
  });
  return ended.wait_for(limit) == std::future_status::ready;
}

std::size_t FileThread::awaited() const { return state_->awaited; }

// An answer may destroy the FileThread, or call run() again.
void FileThread::await_answers(const std::shared_ptr<State>& state) {
  state->answered.async_wait(
      asio::posix::stream_descriptor::wait_read, [state](const boost::system::error_code& error) {
        if (error) return;
        eventfd_t ignored = 0;
        ::eventfd_read(state->answered.native_handle(), &ignored);
        std::unique_lock lock(state->thread->mutex);
        std::deque<Answer> answers = std::exchange(state->thread->answers, {});
        lock.unlock();
        for (const Answer& answer : answers)
          if (state->answered.is_open()) answer();
        state->awaited -= answers.size();
        if (state->answered.is_open() && state->awaited > 0) await_answers(state);
      });
}

bool ends_within(Duration limit, std::function<void()> call) {
  const auto task = std::make_shared<std::packaged_task<void()>>(std::move(call));
  std::future<void> ended = task->get_future();
  std::thread file_thread = start_quiet_thread("er-files", [task] { (*task)(); });
  file_thread.detach();
  return ended.wait_for(limit) == std::future_status::ready;
}

}  // namespace elasticrun::launcher::executors
