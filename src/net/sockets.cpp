// See sockets.hpp.
#include "net/sockets.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/ip/address.hpp>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace elasticrun::net {
namespace {

// The most unsent bytes that the kernel may hold: enough to keep a link busy, but few enough that a
// heartbeat behind them is not late.
constexpr int unsent_bytes_max = 128 * 1024;

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

Result<Address> tcp_address(const std::string& text, std::uint16_t port) {
  boost::system::error_code ec;
  const auto parsed = boost::asio::ip::make_address(text, ec);
  if (ec)
    return Error{fmt::format("'{}' is not a numeric address, as in 10.0.0.1 or fd00::1", text),
                 EINVAL};
  Address address;
  if (parsed.is_v4()) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    const auto bytes = parsed.to_v4().to_bytes();
    std::memcpy(&v4.sin_addr, bytes.data(), bytes.size());
    std::memcpy(&address.storage, &v4, sizeof v4);
    address.size = sizeof v4;
  } else {
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    v6.sin6_scope_id = static_cast<std::uint32_t>(parsed.to_v6().scope_id());
    const auto bytes = parsed.to_v6().to_bytes();
    std::memcpy(&v6.sin6_addr, bytes.data(), bytes.size());
    std::memcpy(&address.storage, &v6, sizeof v6);
    address.size = sizeof v6;
  }
  return address;
}

Result<Address> unix_address(const std::string& path) {
  sockaddr_un un{};
  if (path.empty() || path.size() >= sizeof un.sun_path)
    return Error{
        fmt::format("the socket path '{}' must have 1 to {} bytes; use a shorter directory", path,
                    sizeof un.sun_path - 1)};
  un.sun_family = AF_UNIX;
  std::memcpy(un.sun_path, path.data(), path.size());
  Address address;
  std::memcpy(&address.storage, &un, sizeof un);
  address.size = sizeof un;
  return address;
}

Fd open_socket(int family) {
  return Fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

void set_flag(int fd, int level, int option, int value) {
  // Best effort: a kernel without the option still transports our frames.
  (void)::setsockopt(fd, level, option, &value, sizeof value);
}

Result<int> connect_socket(const Address& address, const std::string& where) {
  Fd fd = open_socket(address.storage.ss_family);
  if (fd.get() < 0) {
    const int error = errno;
    return Error{fmt::format("cannot open a socket: {}", error_text(error)), error};
  }
  if (address.storage.ss_family != AF_UNIX) set_tcp_options(fd.get(), Duration::zero());
  if (::connect(fd.get(), address.get(), address.size) == 0 || errno == EINPROGRESS)
    return fd.release();
  const int error = errno;
  return Error{fmt::format("cannot connect to {}: {}", where, error_text(error)), error};
}

Error listen_error(int error_number, const std::string& address, std::uint16_t port) {
  if (error_number == EADDRINUSE)
    return Error{fmt::format("port {} is in use on {}; choose another with --port, or leave it out",
                             port, address)};
  if (error_number == EACCES)
    return Error{fmt::format("no permission for port {}; choose one above 1023 with --port", port)};
  if (error_number == EADDRNOTAVAIL)
    return Error{fmt::format("this machine does not have the address {}; see --bind", address)};
  return Error{
      fmt::format("cannot listen on {} port {}: {}", address, port, error_text(error_number))};
}

sockaddr_storage name_of(int fd, int (*ask)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  (void)ask(fd, reinterpret_cast<sockaddr*>(&storage), &size);
  return storage;
}

std::uint16_t port_of(const sockaddr_storage& storage) {
  if (storage.ss_family == AF_INET)
    return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
  if (storage.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port);
  return 0;
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = other.release();
  }
  return *this;
}

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

int Fd::release() { return std::exchange(fd_, -1); }

std::string error_text(int error_number) {
  return std::generic_category().message(error_number);  // unlike strerror, thread-safe
}

Result<int> listen_tcp(const std::string& address, std::uint16_t port) {
  Result<Address> where = tcp_address(address, port);
  if (!where) return where.error();
  Fd fd = open_socket(where->storage.ss_family);
  if (fd.get() < 0) return listen_error(errno, address, port);
  set_flag(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);  // ignores only TIME_WAIT of an earlier job
  if (where->storage.ss_family == AF_INET6) set_flag(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (::bind(fd.get(), where->get(), where->size) != 0 || ::listen(fd.get(), SOMAXCONN) != 0)
    return listen_error(errno, address, port);
  return fd.release();
}

Result<int> listen_unix_socket(const std::string& path) {
  Result<Address> where = unix_address(path);
  if (!where) return where.error();
  Fd fd = open_socket(AF_UNIX);
  // At bind the file gets the mode of the descriptor, so there is no moment in which it is more
  // accessible.
  if (fd.get() < 0 || ::fchmod(fd.get(), 0600) != 0 ||
      ::bind(fd.get(), where->get(), where->size) != 0 || ::listen(fd.get(), SOMAXCONN) != 0)
    return Error{fmt::format("cannot listen on '{}': {}", path, error_text(errno))};
  return fd.release();
}

Result<int> connect_tcp(const std::string& address, std::uint16_t port) {
  Result<Address> where = tcp_address(address, port);
  if (!where) return where.error();
  return connect_socket(*where, host_and_port(address, port));
}

Result<int> connect_unix_socket(const std::string& path) {
  Result<Address> where = unix_address(path);
  if (!where) return where.error();
  return connect_socket(*where, path);
}

bool nobody_listens(const std::string& path) {
  const Result<Address> where = unix_address(path);
  if (!where) return false;
  const Fd fd = open_socket(AF_UNIX);
  return fd.get() >= 0 && ::connect(fd.get(), where->get(), where->size) != 0 &&
         errno == ECONNREFUSED;
}

int accept_socket(int listening_fd) {
  return ::accept4(listening_fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

void set_tcp_options(int fd, Duration user_timeout) {
  set_flag(fd, IPPROTO_TCP, TCP_NODELAY, 1);  // before the handshake: 1 ms instead of 44 ms
  set_flag(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_flag(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, unsent_bytes_max);
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(user_timeout).count();
  if (ms <= 0) return;
  set_flag(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(ms));
  // While nothing is sent, probes show whether the other machine still answers.
  const int seconds = std::max(1, static_cast<int>(ms / 4000));
  set_flag(fd, IPPROTO_TCP, TCP_KEEPIDLE, seconds);
  set_flag(fd, IPPROTO_TCP, TCP_KEEPINTVL, seconds);
}

int socket_family(int fd) { return name_of(fd, &::getsockname).ss_family; }

std::uint16_t local_port(int fd) { return port_of(name_of(fd, &::getsockname)); }

std::uint16_t free_port(const std::string& address) {
  const Result<int> socket = listen_tcp(address, 0);
  return socket ? local_port(Fd(*socket).get()) : std::uint16_t{0};
}

std::string peer_name(int fd) {
  const sockaddr_storage storage = name_of(fd, &::getpeername);
  char text[INET6_ADDRSTRLEN] = "?";
  if (storage.ss_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr, text,
                sizeof text);
  } else {
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr, text,
                sizeof text);
  }
  return host_and_port(text, port_of(storage));
}

std::string host_and_port(const std::string& address, std::uint16_t port) {
  if (address.find(':') == std::string::npos) return fmt::format("{}:{}", address, port);
  return fmt::format("[{}]:{}", address, port);
}

void take_standard_descriptors() {
  while (true) {
    const int fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd > STDERR_FILENO || fd < 0) {
      ::close(fd);
      return;
    }
    ::fcntl(fd, F_SETFD, 0);
  }
}

PeerCredentials peer_credentials(int fd) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return {};
  return {credentials.pid, credentials.uid};
}

}  // namespace elasticrun::net
