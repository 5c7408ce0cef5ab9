#include "worker/gloo_transport.hpp"

#include <fcntl.h>
#include <gloo/common/error.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <ctime>

#include "base/check.hpp"
#include "worker/group.hpp"

namespace elasticrun::worker::gloo_transport {

namespace tcp = gloo::transport::tcp;

namespace {

// Short against the 10 ms it replaces, long against the cost of a turn (some microseconds).
constexpr std::chrono::microseconds tick{200};

// A child of the user's program must not hold our connections open.
void close_on_exec(int fd) {
  if (fd >= 0) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

// The loop thread is not the program's: its signal handlers must not run there.
std::shared_ptr<tcp::Device> device_with_all_signals_blocked(const std::string& address) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::shared_ptr<tcp::Device> device;
  std::string why;
  try {
    const tcp::attr attributes(address.c_str());
    device = std::make_shared<tcp::Device>(tcp::CreateDeviceAttr(attributes));
  } catch (const std::exception& error) {
    why = error.what();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!device)
    throw GroupBroken("cannot listen on " + address + ", is it an address of this machine? " + why);
  return device;
}

}  // namespace

Ticker::Ticker(std::shared_ptr<tcp::Device> device)
    : device_(std::move(device)),
      timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  if (timer_ < 0) throw GroupBroken("no timer for the data plane: too many open files?");
  device_->registerDescriptor(timer_, EPOLLIN, this);
}

Ticker::~Ticker() {
  device_->unregisterDescriptor(timer_, this);
  ::close(timer_);
}

void Ticker::arm() {
  const std::lock_guard lock(mutex_);
  if (armed_++ == 0) set(tick);
}

void Ticker::disarm() {
  const std::lock_guard lock(mutex_);
  if (--armed_ == 0) set(std::chrono::nanoseconds(0));
}

void Ticker::set(std::chrono::nanoseconds interval) {
  itimerspec spec{};
  spec.it_value.tv_nsec = interval.count();
  spec.it_interval.tv_nsec = interval.count();
  ER_CHECK(::timerfd_settime(timer_, 0, &spec, nullptr) == 0);
}

void Ticker::handleEvents(int) {
  std::uint64_t turns = 0;
  [[maybe_unused]] const ssize_t got = ::read(timer_, &turns, sizeof turns);
}

Device::Device(const std::string& address)
    : gloo(device_with_all_signals_blocked(address)), ticker(gloo) {}

NoSigpipe::NoSigpipe() {
  sigset_t pipe, before, pending;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  sigpending(&pending);
  ours_ = !sigismember(&before, SIGPIPE) && !sigismember(&pending, SIGPIPE);
}

NoSigpipe::~NoSigpipe() {
  if (!ours_) return;
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  const timespec now{};
  while (::sigtimedwait(&pipe, nullptr, &now) == -1 && errno == EINTR) {
  }
  pthread_sigmask(SIG_UNBLOCK, &pipe, nullptr);
}

// Ends its waits when it is told to, which Gloo allows to its own pairs only.
class Buffer final : public tcp::UnboundBuffer {
 public:
  Buffer(const std::shared_ptr<Transport>& transport, void* data, size_t bytes)
      : tcp::UnboundBuffer(transport, data, bytes), owner_(*transport) {
    const std::lock_guard lock(owner_.mutex_);
    if (owner_.failed_) std::rethrow_exception(owner_.failed_);
    owner_.waiting_.insert(this);
  }
  ~Buffer() override {
    const std::lock_guard lock(owner_.mutex_);
    owner_.waiting_.erase(this);
  }
  using tcp::UnboundBuffer::signalException;

 private:
  Transport& owner_;  // kept alive by the base's context_
};

Pair::Pair(Transport* transport, tcp::Device* device, int rank, std::chrono::milliseconds timeout)
    : tcp::Pair(transport, device, rank, timeout) {
  close_on_exec(fd_);
}

// What Gloo throws here would end the program: the loop thread catches nothing. A peer that hangs
// up between connecting and being accepted is enough.
void Pair::handleEvents(int events) {
  try {
    tcp::Pair::handleEvents(events);
  } catch (const std::exception& error) {
    {
      // Closing takes the descriptor out of the loop, which is fatal when it was never in it.
      const std::lock_guard lock(m_);
      if (state_ != CLOSED && fd_ >= 0) device_->registerDescriptor(fd_, EPOLLIN, this);
    }
    signalExceptionExternal(error.what());
    static_cast<Transport*>(context_)->fail_all(error.what());
  }
}

void Pair::abort() noexcept {
  aborted_ = true;
  const std::lock_guard lock(m_);
  if (state_ != CLOSED && fd_ >= 0) ::shutdown(fd_, SHUT_RDWR);
}

// Called with m_ held, on every way into a state but the constructor's and the destructor's.
void Pair::changeState(state next) noexcept {
  if (next == CLOSED) fail_messages_cut_in_the_middle();
  tcp::Pair::changeState(next);
  if (next != CONNECTING && next != CONNECTED) return;
  close_on_exec(fd_);
  if (aborted_) ::shutdown(fd_, SHUT_RDWR);
}

// Gloo tells the buffers whose message has not begun, and forgets the ones under way: their waits
// would last until the operation's timeout.
void Pair::fail_messages_cut_in_the_middle() noexcept {
  const std::exception_ptr why =
      ex_ ? ex_ : std::make_exception_ptr(gloo::IoException("connection closed"));
  const auto fail = [&](const tcp::Op& op) {
    if (const gloo::NonOwningPtr<tcp::UnboundBuffer> buffer(op.ubuf); buffer)
      static_cast<Buffer*>(buffer.operator->())->signalException(why);
  };
  fail(rx_);
  for (const tcp::Op& op : tx_) fail(op);
}

std::unique_ptr<gloo::transport::Pair>& Transport::createPair(int peer) {
  pairs_[static_cast<std::size_t>(peer)] =
      std::make_unique<Pair>(this, device_.get(), peer, getTimeout());
  return pairs_[static_cast<std::size_t>(peer)];
}

std::unique_ptr<gloo::transport::UnboundBuffer> Transport::createUnboundBuffer(void* data,
                                                                             size_t bytes) {
  return std::make_unique<Buffer>(std::static_pointer_cast<Transport>(shared_from_this()), data,
                                  bytes);
}

void Transport::fail_all(const std::string& why) noexcept {
  const std::lock_guard lock(mutex_);
  if (!failed_) failed_ = std::make_exception_ptr(gloo::IoException(why));
  for (Buffer* buffer : waiting_) buffer->signalException(failed_);
}

void Transport::abort() noexcept {
  fail_all("aborted");
  for (const auto& pair : pairs_)
    if (pair) static_cast<Pair*>(pair.get())->abort();
}

}  // namespace elasticrun::worker::gloo_transport
