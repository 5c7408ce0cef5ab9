// Calls that touch files, on a thread of their own: a file server that does not answer keeps
// whoever asks it in the kernel for as long as it likes, and the thread that decides must not wait
// for that.
//
// One thread, one call at a time: what it is used for is small and not in a hurry. Not Asio's
// thread_pool, whose end waits for the calls under way; a call that hangs is left alone here, and
// ends with the process.
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
  // No answer comes any more.
  ~FileThread();
  FileThread(const FileThread&) = delete;
  FileThread& operator=(const FileThread&) = delete;

  // `call` runs on the thread, after those before it; what it returns then runs on the io_context.
  // It may outlive this object and its owner, so it uses nothing but what it has captured by value.
  using Answer = std::function<void()>;
  void run(std::function<Answer()> call);
  // Calls that have no answer yet.
  std::size_t awaited() const;

 private:
  struct Thread;
  struct State;
  static void await_answers(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
};

// The same for a thread that can wait a little, once. False: the call has not ended within `limit`.
bool ends_within(Duration limit, std::function<void()> call);

}  // namespace elasticrun::launcher::executors
