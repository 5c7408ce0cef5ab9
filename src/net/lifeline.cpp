// See lifeline.hpp.
#include "net/lifeline.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/quiet_thread.hpp"

namespace elasticrun::net {
namespace {

constexpr std::uint32_t nobody = 0;
// No thread has this number. It makes the watch look whether it is over.
constexpr std::uint32_t nobody_any_more = FUTEX_TID_MASK;
constexpr std::size_t page_bytes = 4096;

// Behind the word.
constexpr off_t trained_at = sizeof(std::uint32_t);
constexpr char trained = 't';

Error failure(const std::string& path) { return Error{path + ": " + error_text(errno)}; }

}  // namespace

std::string lifeline_path(const std::string& socket_path, WorkerId worker) {
  return fmt::format("{}/lifeline-{}", socket_path.substr(0, socket_path.rfind('/')), worker.value);
}

bool has_trained(const std::string& lifeline) {
  const Fd file(::open(lifeline.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  char mark = 0;
  return file.get() >= 0 && ::pread(file.get(), &mark, 1, trained_at) == 1 && mark == trained;
}

void note_training(const std::string& lifeline) {
  const Fd file(::open(lifeline.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() >= 0) (void)!::pwrite(file.get(), &trained, 1, trained_at);
}

// ---------------------------------------------------------------- the word

Result<SharedWord> SharedWord::open(const std::string& path, int flags) {
  const int file = ::open(path.c_str(), flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  if (file < 0) return failure(path);
  SharedWord word{Fd(file)};
  if (flags & O_CREAT) word.write(nobody);
  if (const auto there = word.read(); !there) return there.error();
  void* const page = ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (page == MAP_FAILED) return failure(path);
  word.page_ = page;
  return word;
}

SharedWord::SharedWord(SharedWord&& other) noexcept
    : file_(std::move(other.file_)), page_(std::exchange(other.page_, nullptr)) {}

SharedWord::~SharedWord() {
  if (page_) ::munmap(page_, page_bytes);
}

Result<std::uint32_t> SharedWord::read() const {
  std::uint32_t value = 0;
  if (::pread(file_.get(), &value, sizeof value, 0) == sizeof value) return value;
  return Error{"a lifeline has no bytes"};
}

void SharedWord::write(std::uint32_t value) const {
  (void)!::pwrite(file_.get(), &value, sizeof value, 0);
}

bool SharedWord::forget_owner() const {
  constexpr int bit = 30;
  static_assert(FUTEX_OWNER_DIED == 1u << bit);
  constexpr auto clear = FUTEX_OP(FUTEX_OP_ANDN | FUTEX_OP_OPARG_SHIFT, bit, FUTEX_OP_CMP_EQ, 0);
  return ::syscall(SYS_futex, page_, FUTEX_WAKE_OP, 0, nullptr, page_, clear) >= 0;
}

Result<void> SharedWord::wait_while(std::uint32_t value) const {
  const timespec a_second{1, 0};
  if (::syscall(SYS_futex, page_, FUTEX_WAIT, value, &a_second, nullptr, 0) == 0) return {};
  if (errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT) return {};
  return Error{error_text(errno)};
}

void SharedWord::wake() const {
  (void)::syscall(SYS_futex, page_, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

// ---------------------------------------------------------------- who holds it

// When the thread ends, the kernel goes through its list; where a word has the thread's number, it
// sets FUTEX_OWNER_DIED there, and wakes a waiter if FUTEX_WAITERS is set.
HeldLifeline::HeldLifeline(const std::string& path) : word_(SharedWord::open(path, 0)) {
  std::size_t size = 0;
  if (!word_ || ::syscall(SYS_get_robust_list, 0, &list_of_libc_, &size) != 0) return;
  entry_.next = &list_.list;
  list_.list.next = &entry_;
  list_.futex_offset =
      static_cast<const char*>(word_->address()) - reinterpret_cast<const char*>(&entry_);
  held_ = ::syscall(SYS_set_robust_list, &list_, sizeof list_) == 0;
  if (!held_) return;
  word_->write(static_cast<std::uint32_t>(::gettid()) | FUTEX_WAITERS);
  word_->wake();
}

HeldLifeline::~HeldLifeline() {
  if (!held_) return;
  word_->write(nobody);
  (void)::syscall(SYS_set_robust_list, list_of_libc_, sizeof *list_of_libc_);
  word_->wake();
}

// ---------------------------------------------------------------- who watches it

LifelineWatch::LifelineWatch(std::string path, std::function<void()> broken)
    : path_(std::move(path)),
      broken_(std::move(broken)),
      word_(SharedWord::open(path_, O_CREAT | O_EXCL)) {
  if (!word_) return;
  try {
    thread_ = start_quiet_thread("er-lifeline", [this] {
      begun_.count_down();
      watch();
    });
    begun_.wait();
  } catch (const std::system_error&) {
    // The user may not have more threads: deaths are only learned later.
  }
}

LifelineWatch::~LifelineWatch() {
  if (!word_) return;
  (void)::unlink(path_.c_str());
  if (!thread_.joinable()) return;
  over_ = true;
  word_->write(nobody_any_more);
  word_->wake();
  thread_.join();
}

void LifelineWatch::watch() const {
  while (!over_) {
    const Result<std::uint32_t> value = word_->read();
    if (!value) return;
    if (*value & FUTEX_OWNER_DIED) {
      const bool forgotten = word_->forget_owner();
      broken_();
      if (!forgotten) return;
    } else if (!word_->wait_while(*value)) {
      return;
    }
  }
}

}  // namespace elasticrun::net
