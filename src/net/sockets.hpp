// Sockets by the system's own calls: every descriptor is born with CLOEXEC and non-blocking.
//
// Asio would open and accept them, too, but without CLOEXEC; setting it afterwards leaves a moment
// in which another thread's fork hands our port to a worker. The library lives in programs with
// threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "base/time.hpp"

namespace elasticrun::net {

// A descriptor with an owner.
class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd();
  int get() const { return fd_; }
  int release();

 private:
  int fd_;
};

// Opens those of 0, 1 and 2 that are closed, on /dev/null. First thing in a program: a socket would
// otherwise get such a number, and a message for the terminal would go into it.
void take_standard_descriptors();

// The text of errno, or of another error number.
std::string error_text(int error_number);

// A listening socket. Address in use, no such address, no permission: an error for a person.
Result<int> listen_tcp(const std::string& address, std::uint16_t port);
Result<int> listen_unix_socket(const std::string& path);

// A socket on its way to the peer: writable when connected or failed.
Result<int> connect_tcp(const std::string& address, std::uint16_t port);
Result<int> connect_unix_socket(const std::string& path);

// There is a socket at that path, and no process has it open: it was left behind.
bool nobody_listens(const std::string& path);

// -1 and errno, as accept.
int accept_socket(int listening_fd);

// Small frames at once, dead peers noticed, bulk kept in our queue instead of the kernel's.
void set_tcp_options(int fd, Duration user_timeout);

int socket_family(int fd);  // AF_UNIX, AF_INET, AF_INET6
std::uint16_t local_port(int fd);
// "10.0.0.2:4711", "[::1]:4711"
std::string peer_name(int fd);
std::string host_and_port(const std::string& address, std::uint16_t port);
struct PeerCredentials {
  std::int32_t pid = -1;
  std::uint32_t uid = ~0u;
};
PeerCredentials peer_credentials(int fd);

}  // namespace elasticrun::net
