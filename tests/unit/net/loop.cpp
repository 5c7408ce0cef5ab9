// See loop.hpp.
#include "loop.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "base/check.hpp"
#include "wire/limits.hpp"

namespace elasticrun::net {

bool run_until(boost::asio::io_context& io, const std::function<bool()>& done, Duration limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!done()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    io.restart();
    // Short, because `done` may watch a raw socket, whose events do not wake this loop.
    io.run_one_for(std::chrono::milliseconds(1));
  }
  return true;
}

std::pair<Fd, Fd> socket_pair() {
  int fds[2];
  ER_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
  return {Fd(fds[0]), Fd(fds[1])};
}

bool raw_write(boost::asio::io_context& io, int fd, std::string_view bytes) {
  return run_until(io, [&] {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
    return bytes.empty();
  });
}

std::string raw_read(int fd) {
  std::string bytes;
  char buffer[65536];
  ssize_t n = 0;
  while ((n = ::recv(fd, buffer, sizeof buffer, 0)) > 0)
    bytes.append(buffer, static_cast<std::size_t>(n));
  return bytes;
}

bool raw_closed(int fd) {
  (void)raw_read(fd);
  char c = 0;
  const ssize_t n = ::recv(fd, &c, 1, 0);
  return n == 0 || (n < 0 && errno != EAGAIN);
}

Handlers Log::handlers() {
  return {
      .on_frame = [this](WorkerId worker,
                         std::string_view payload) { frames.emplace_back(worker.value, payload); },
      .on_close = [this](const std::string& reason) { ends.push_back(reason); }};
}

wire::Hello hello_of(const std::string& role, const std::string& job) {
  wire::Hello hello;
  hello.protocol = wire::protocol;
  hello.version = "9.9.9";
  hello.role = role;
  hello.job = job;
  hello.term = Term(1);
  hello.pid = ::getpid();
  return hello;
}

ListenerOptions options_of(const std::string& role, const std::string& job) {
  ListenerOptions options;
  options.roles = {role};
  options.job = job;
  options.welcome.protocol = wire::protocol;
  options.welcome.version = "9.9.9";
  options.welcome.term = Term(4);
  return options;
}

TlsKey key_of(const std::string& identity, unsigned char filling) {
  TlsKey key;
  key.identity = identity;
  key.secret.fill(filling);
  return key;
}

FindKey only(const TlsKey& key) {
  return [key](std::string_view identity) {
    return identity == key.identity ? std::optional(key.secret) : std::nullopt;
  };
}

ListenerHandlers Guestbook::handlers() {
  return {.admit =
              [this](const wire::Hello&, const Peer&, wire::Welcome&) {
                return answer.empty() ? Result<void>() : Result<void>(Error{answer});
              },
          .accepted =
              [this](std::unique_ptr<Session> session, const wire::Hello& hello, const Peer& peer) {
                sessions.push_back(std::move(session));
                hellos.push_back(hello);
                peers.push_back(peer);
              },
          .refused = [this](const Peer&, const std::string& why) { refused.push_back(why); }};
}

DialDone Outcome::handler() {
  return [this](Result<Greeted> result) {
    ++calls;
    if (!result) {
      error = result.error().text;
      return;
    }
    session = std::move(result->session);
    welcome = result->welcome;
  };
}

}  // namespace elasticrun::net
