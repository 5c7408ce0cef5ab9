// Runs calls that touch files on a separate thread: when a file server does not answer, such a call
// can block in the kernel without limit, and the thread that makes decisions must not wait for it.
//
// One thread, one call at a time: the calls are small and not urgent. Not Asio's thread_pool, whose
// destructor waits for the calls in progress; here a call that hangs is abandoned, and ends with
// the process.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "base/time.hpp"

namespace boost::asio {
class io_context;
}

namespace elasticrun::launcher::executors {

class FileThread {
 public:
  explicit FileThread(boost::asio::io_context& io);
  // No answer runs after this.
  ~FileThread();
  FileThread(const FileThread&) = delete;
  FileThread& operator=(const FileThread&) = delete;

  // `call` runs on the thread, after the earlier calls; the function it returns then runs on the
  // io_context. `call` may outlive this object and its owner, so it must use only what it has
  // captured by value.
  using Answer = std::function<void()>;
  void run(std::function<Answer()> call);
  // For a caller that can wait a little: the same, and waits for at most `limit`. False: the call
  // has not ended within that time; it is abandoned.
  bool ends_within(Duration limit, std::function<void()> call);
  // The number of calls whose answer has not run yet.
  std::size_t awaited() const;

 private:
  struct Thread;
  struct State;
  static void await_answers(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
};

// The same for one call, on a thread made for it.
bool ends_within(Duration limit, std::function<void()> call);

}  // namespace elasticrun::launcher::executors
