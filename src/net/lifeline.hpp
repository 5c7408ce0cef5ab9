// A lifeline: a word of shared memory by which an agent learns that a worker's process is dying,
// long before the process has ended.
//
// Before the kernel tells the parent of a killed process, and before it closes the connections of
// that process, it takes its memory apart: 30 ms for a program with PyTorch, 80 ms for each further
// GB, and more where there are GPUs. Robust futexes are released before that (set_robust_list(2)).
// So a thread of the library holds one for as long as it lives, and the agent waits for it.
//
// Not a robust mutex of pthreads: its owner's C library may be another one than the agent's, and
// who waits for it believes pointers that the other process has written.
//
// Neither side touches the word through its mapping: if somebody cut the file short, that would
// kill the process (SIGBUS). System calls return an error instead.
#pragma once

#include <linux/futex.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <latch>
#include <string>
#include <thread>
#include <utility>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "net/sockets.hpp"

namespace elasticrun::net {

// Beside the agent's socket, so that the library finds it.
std::string lifeline_path(const std::string& socket_path, WorkerId worker);

// Whether a process of the worker has trained. The lifeline remembers it, for it is there from the
// worker's start to its end, whichever processes come and go below its command.
bool has_trained(const std::string& lifeline);
void note_training(const std::string& lifeline);

// A page of a file that both sides have mapped.
class SharedWord {
 public:
  // `flags`: of open(2).
  static Result<SharedWord> open(const std::string& path, int flags);
  SharedWord(SharedWord&& other) noexcept;
  SharedWord& operator=(SharedWord&&) = delete;
  ~SharedWord();

  const void* address() const { return page_; }
  Result<std::uint32_t> read() const;
  void write(std::uint32_t value) const;
  // Clears FUTEX_OWNER_DIED, whatever others write meanwhile. False: that failed.
  bool forget_owner() const;
  // Returns when the word is woken, or has another value, or after a second: somebody may have
  // overwritten the value that was to end the wait.
  Result<void> wait_while(std::uint32_t value) const;
  void wake() const;

 private:
  explicit SharedWord(Fd file) : file_(std::move(file)) {}

  Fd file_;
  void* page_ = nullptr;
};

// Holds a lifeline; the destructor, on the same thread, lets go of it. Where it cannot be held,
// the agent only learns later that the process has died.
class HeldLifeline {
 public:
  explicit HeldLifeline(const std::string& path);
  ~HeldLifeline();
  HeldLifeline(const HeldLifeline&) = delete;
  HeldLifeline& operator=(const HeldLifeline&) = delete;

 private:
  Result<SharedWord> word_;
  robust_list entry_{};
  robust_list_head list_{};
  robust_list_head* list_of_libc_ = nullptr;
  bool held_ = false;
};

// Makes a lifeline, and watches it.
class LifelineWatch {
 public:
  // `broken` is called, on a thread of its own, each time when a thread that held the lifeline has
  // ended without letting go: its process dies, or becomes another program (execve(2)).
  LifelineWatch(std::string path, std::function<void()> broken);
  ~LifelineWatch();
  LifelineWatch(const LifelineWatch&) = delete;
  LifelineWatch& operator=(const LifelineWatch&) = delete;

 private:
  void watch() const;

  const std::string path_;
  const std::function<void()> broken_;
  const Result<SharedWord> word_;
  std::atomic<bool> over_ = false;
  std::latch begun_{1};  // a fork right after the constructor must not meet a thread that starts
  std::thread thread_;
};

}  // namespace elasticrun::net
