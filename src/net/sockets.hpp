// Sockets by direct system calls: every descriptor is created with CLOEXEC and non-blocking.
//
// Asio could open and accept sockets, but without CLOEXEC. Setting it afterwards leaves a moment in
// which a fork by another thread passes our port on to a worker, and the library runs in programs
// with threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "base/time.hpp"

namespace elasticrun::net {

// A descriptor that is closed with its owner.
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

// Opens on /dev/null those of the descriptors 0, 1 and 2 that are closed. Call it first in a
// program: otherwise a socket could get one of these numbers, and text for the terminal would be
// written into it.
void take_standard_descriptors();

// The text of errno, or of another error number.
std::string error_text(int error_number);

// A listening socket. Errors (address in use, no such address, no permission) are for the user.
Result<int> listen_tcp(const std::string& address, std::uint16_t port);
Result<int> listen_unix_socket(const std::string& path);

// A socket that is connecting; it becomes writable when it is connected or has failed.
Result<int> connect_tcp(const std::string& address, std::uint16_t port);
Result<int> connect_unix_socket(const std::string& path);

// True: there is a socket at this path, but no process has it open. It was left behind.
bool nobody_listens(const std::string& path);

// On failure returns -1 and sets errno, like accept.
int accept_socket(int listening_fd);

// Sets options such that small frames are sent at once, dead peers are noticed, and bulk waits in
// our queue instead of the kernel's. `user_timeout`: the kernel ends the connection after this time
// without an answer of the other machine; 0: the system's default.
void set_tcp_options(int fd, Duration user_timeout);

int socket_family(int fd);  // AF_UNIX, AF_INET, AF_INET6
std::uint16_t local_port(int fd);
// A port of that address that is free at the moment; a program that wants it later must be quick,
// as with torchrun's free port. 0: there is none.
std::uint16_t free_port(const std::string& address);
// "10.0.0.2:4711", "[::1]:4711"
std::string peer_name(int fd);
std::string host_and_port(const std::string& address, std::uint16_t port);
struct PeerCredentials {
  std::int32_t pid = -1;
  std::uint32_t uid = ~0u;
};
PeerCredentials peer_credentials(int fd);

}  // namespace elasticrun::net
