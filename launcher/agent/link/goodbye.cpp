// See goodbye.hpp.
#include "launcher/agent/link/goodbye.hpp"

#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <optional>

#include "launcher/agent/link/tls_key.hpp"
#include "net/dial.hpp"
#include "net/sockets.hpp"
#include "net/tls.hpp"
#include "wire/limits.hpp"

namespace elasticrun::launcher::agent::link {
namespace {

constexpr Duration patience = std::chrono::seconds(1);

std::optional<executors::AgentStart> what_was_told(int socket) {
  std::string line(executors::agent_start_bytes_max, '\0');
  const ssize_t n = ::recv(socket, line.data(), line.size(), MSG_DONTWAIT);
  if (n <= 0) return std::nullopt;
  line.resize(static_cast<std::size_t>(n));
  const Result<executors::AgentStart> start = executors::decode_agent_start(line);
  return start ? std::optional(*start) : std::nullopt;
}

}  // namespace

void tell_watchdog(int socket, const executors::AgentStart& start, const std::string& controller) {
  executors::AgentStart told = start;
  told.addresses = {controller};
  const std::string line = encode(told);
  (void)!::send(socket, line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void say_goodbye(int socket, const std::string& reason) {
  const auto start = what_was_told(socket);
  if (!start) return;
  boost::asio::io_context io;
  const wire::Hello hello{.protocol = wire::protocol,
                          .version = start->version,
                          .role = "watchdog",
                          .job = start->job,
                          .term = start->term,
                          .host = start->host,
                          .reason = reason};
  const std::string& controller = start->addresses.front();
  const net::Operation dialling = net::dial_socket(
      io, net::connect_tcp(controller, start->port), net::host_and_port(controller, start->port),
      net::tls_dialler(io, key_of(*start), {}), hello, patience, [](const auto&) {});
  io.run_for(patience);
}

}  // namespace elasticrun::launcher::agent::link
