// See gloo_transport.hpp.
#include "worker/collective/gloo_transport.hpp"

#include <arpa/inet.h>
#include <gloo/common/error.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <thread>

#include "base/check.hpp"
#include "worker/collective/group.hpp"

namespace elasticrun::worker::collective::gloo_transport {

namespace tcp = gloo::transport::tcp;

std::string cleaned(const std::string& text) {
  const std::size_t end = text.starts_with('[') ? text.find("] ") : std::string::npos;
  return end == std::string::npos ? text : text.substr(end + 2);
}

namespace {

// Short compared with the 10 ms it replaces, long compared with the cost of a turn (microseconds).
constexpr std::chrono::microseconds tick{200};
// Retransmissions in a row; the pauses before them are at least 0.2, 0.4 and 0.8 s.
constexpr unsigned retransmits_of_a_lost_link = 3;
constexpr const char* lost_words = "what is sent to it does not arrive";

// Parses a numeric IPv4 or IPv6 address; names are resolved where the address is chosen.
std::optional<sockaddr_storage> parse_address(const std::string& text) {
  sockaddr_storage storage{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
  if (::inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    return storage;
  }
  if (::inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    return storage;
  }
  return std::nullopt;
}

// The attributes of a device. Gloo's own lookup goes through a name server, and leaks memory when
// it fails.
tcp::attr attributes_of(const std::string& text) {
  const auto address = parse_address(text);
  if (!address) throw GroupBroken("not an IP address for the data plane: '" + text + "'");
  tcp::attr attributes(text.c_str());
  attributes.ai_family = address->ss_family;
  attributes.ai_socktype = SOCK_STREAM;
  attributes.ai_protocol = 0;
  attributes.ai_addr = *address;
  attributes.ai_addrlen =
      address->ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  const int fd = ::socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool bound = fd >= 0 && ::bind(fd, reinterpret_cast<const sockaddr*>(&*address),
                                       static_cast<socklen_t>(attributes.ai_addrlen)) == 0;
  const std::string why = std::strerror(errno);
  if (fd >= 0) ::close(fd);
  if (!bound) throw GroupBroken("cannot listen on " + text + " for the data plane: " + why);
  return attributes;
}

// The loop thread is the library's, so the program's signal handlers must not run on it.
std::shared_ptr<tcp::Device> device_with_all_signals_blocked(const std::string& address) {
  const tcp::attr attributes = attributes_of(address);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::shared_ptr<tcp::Device> device;
  std::string why;
  try {
    device = std::make_shared<tcp::Device>(attributes);
  } catch (const std::exception& error) {
    why = error.what();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!device) throw GroupBroken("no data plane on " + address + ": " + why);
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
  // unregisterDescriptor waits for the loop to turn, but by a condition variable without a lock,
  // which does not order memory accesses; this lock does.
  const std::lock_guard lock(mutex_);
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
  const std::lock_guard lock(mutex_);
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

// A buffer whose waits this transport can end, which Gloo allows only to its own pairs.
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
  // Gloo has begun to listen on a port of its own, and would take the first connection to it for
  // the peer. Closing the socket also removes it from the loop.
  const std::lock_guard lock(m_);
  ::close(fd_);
  fd_ = -1;
  state_ = INITIALIZING;
}

void Pair::adopt(net::Fd socket) {
  const std::lock_guard lock(m_);
  fd_ = socket.release();
  handleConnected();
}

// Gloo's destructor would close the pair when our part of it is already destroyed, and the loop
// thread may be in that part until then. Closing waits for the loop to turn, but by a condition
// variable without a lock; and it does not wait at all when the loop thread itself has closed the
// pair, maybe in the handler it is still in.
Pair::~Pair() {
  {
    const std::lock_guard lock(m_);
    if (state_ != CLOSED) changeState(CLOSED);
  }
  const std::lock_guard wait(busy_);
}

// While another thread holds the pair's lock, Gloo's loop calls this again at once, over and over.
// With more threads than cores it takes the very core that the other thread needs: 4 ms for a small
// all-reduce of four ranks on two cores, 0.5 ms with the yield.
//
// An exception of Gloo's here would end the program, for the loop thread catches none. A peer that
// hangs up between connecting and being accepted is enough to cause one.
void Pair::handleEvents(int events) {
  const std::lock_guard busy(busy_);
  if (const std::unique_lock free(m_, std::try_to_lock); !free) {
    std::this_thread::yield();
    return;
  }
  if (state_ == INITIALIZING) return;  // a connection to Gloo's port, which is closed by now
  try {
    tcp::Pair::handleEvents(events);
  } catch (const std::exception& error) {
    {
      // Closing removes the descriptor from the loop, which is fatal when it was never in it.
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

bool Pair::is_lost() {
  const std::lock_guard lock(m_);
  return state_ == CONNECTED && loses_packets();
}

// Whether the link to the peer loses packets. On a path that passes only small packets the
// connection stays up, and Gloo waits for ever. That differs from a peer that does not read (it
// computes): its machine acknowledges what it has taken, and then that it has no room, so nothing
// is unacknowledged.
bool Pair::loses_packets() const noexcept {
  tcp_info info{};
  socklen_t size = sizeof info;
  return fd_ >= 0 && ::getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
         info.tcpi_unacked > 0 && info.tcpi_retransmits >= retransmits_of_a_lost_link;
}

// Called with m_ held for every change of the state, except in the constructor and the destructor.
void Pair::changeState(state next) noexcept {
  if (next == CLOSED) {
    note_loss();
    fail_messages_cut_in_the_middle();
  }
  tcp::Pair::changeState(next);
  if (next == CONNECTED && aborted_) ::shutdown(fd_, SHUT_RDWR);
}

void Pair::note_loss() noexcept {
  if (aborted_ || !ex_) return;
  try {
    std::rethrow_exception(ex_);
  } catch (const std::exception& error) {
    const std::string text = cleaned(error.what());
    const bool hung_up = text.find("closed by peer") != text.npos ||
                         text.find(std::strerror(ECONNRESET)) != text.npos ||
                         text.find(std::strerror(EPIPE)) != text.npos;
    if (loses_packets())
      static_cast<Transport*>(context_)->note({rank_, false, lost_words});
    else
      static_cast<Transport*>(context_)->note({rank_, hung_up, text});
  }
}

// Gloo notifies the buffers whose message has not begun, and forgets those whose message is under
// way: their waits would last until the operation's timeout. There is no cast to Buffer, since that
// part of the object may already be destroyed.
void Pair::fail_messages_cut_in_the_middle() noexcept {
  const std::exception_ptr why =
      ex_ ? ex_ : std::make_exception_ptr(gloo::IoException("connection closed"));
  const auto fail = [&](const tcp::Op& op) {
    if (const gloo::NonOwningPtr<tcp::UnboundBuffer> buffer(op.ubuf); buffer)
      (buffer.operator->()->*(&Buffer::signalException))(why);
  };
  fail(rx_);
  for (const tcp::Op& op : tx_) fail(op);
}

// Pairs use this object, so they are destroyed first.
Transport::~Transport() {
  for (auto& pair : pairs_) pair.reset();
}

std::unique_ptr<gloo::transport::Pair>& Transport::createPair(int peer) {
  pairs_[static_cast<std::size_t>(peer)] =
      std::make_unique<Pair>(this, device_.get(), peer, getTimeout());
  return pairs_[static_cast<std::size_t>(peer)];
}

std::unique_ptr<gloo::transport::Pair>& Transport::getPair(int peer) {
  auto& pair = pairs_.at(static_cast<std::size_t>(peer));
  ER_CHECK(pair, "a message between ranks that are no neighbours");
  return pair;
}

void Transport::adopt(int peer, net::Fd socket) {
  static_cast<Pair*>(createPair(peer).get())->adopt(std::move(socket));
}

void Transport::note(PeerTrouble trouble) noexcept {
  const std::lock_guard lock(mutex_);
  troubles_.push_back(std::move(trouble));
}

std::vector<PeerTrouble> Transport::troubles() const {
  const std::lock_guard lock(mutex_);
  return troubles_;
}

std::vector<PeerTrouble> Transport::lost_links() const {
  std::vector<PeerTrouble> lost = troubles();
  std::erase_if(lost, [](const PeerTrouble& trouble) { return trouble.reason != lost_words; });
  for (std::size_t peer = 0; peer < pairs_.size(); ++peer)
    if (pairs_[peer] && static_cast<Pair*>(pairs_[peer].get())->is_lost())
      lost.push_back({static_cast<int>(peer), false, lost_words});
  return lost;
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

}  // namespace elasticrun::worker::collective::gloo_transport
