// See server.hpp.
#include "rendezvous/server.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <utility>

#include "base/check.hpp"
#include "net/session.hpp"
#include "wire/limits.hpp"

namespace elasticrun::rendezvous {

struct Server::Impl {
  ServerOptions options;
  ServerHandlers handlers;
  std::unique_ptr<net::Listener> listener;
  std::map<HostId, std::unique_ptr<net::Session>> agents;
  std::uint64_t strangers = 0;

  std::optional<net::Secret> find_key(std::string_view identity) const;
  Result<void> admit(const wire::Hello& hello, const net::Peer& peer, wire::Welcome& welcome);
  void accepted(std::unique_ptr<net::Session> session, const wire::Hello& hello,
                const net::Peer& peer);
  void down(HostId host, const std::string& reason);
};

std::optional<net::Secret> Server::Impl::find_key(std::string_view identity) const {
  const auto owner = options.keys.owner(identity);
  if (!owner) return std::nullopt;
  const bool joins = *owner == no_host;
  if (joins ? !options.hosts_may_join : !handlers.knows(*owner)) return std::nullopt;
  return options.keys.secret(identity);
}

Result<void> Server::Impl::admit(const wire::Hello& hello, const net::Peer& peer,
                                 wire::Welcome& welcome) {
  const wire::Welcome& ours = options.welcome;
  if (options.keys.owner(peer.identity) != hello.host)
    return Error{fmt::format("it claims to be host {}, which '{}' is not the key of",
                             hello.host.value, peer.identity)};
  if (hello.version != ours.version)
    return Error{fmt::format("the controller has version {}, this agent {}; use one version",
                             ours.version, hello.version)};
  if (hello.term > ours.term)
    return Error{fmt::format("a newer controller (term {}) has taken over from this one (term {})",
                             hello.term.value, ours.term.value)};
  const Result<HostId> number = handlers.admit(hello);
  if (!number) return number.error();
  welcome.host = *number;
  if (hello.host == no_host) {
    HostKey own = options.keys.of_host(*number);
    welcome.identity = std::move(own.identity);
    welcome.key_hex = std::move(own.key_hex);
  }
  if (agents.contains(welcome.host))
    return Error{fmt::format("host {} is connected already", welcome.host.value)};
  return {};
}

void Server::Impl::accepted(std::unique_ptr<net::Session> session, const wire::Hello& hello,
                            const net::Peer& peer) {
  const HostId host = hello.host;
  // The session dies with this object, and its handlers are not called after its death.
  session->start({.on_frame =
                      [this, host](WorkerId worker, std::string_view payload) {
                        handlers.agent_frame(host, worker, payload);
                      },
                  .on_close = [this, host](const std::string& reason) { down(host, reason); }});
  agents[host] = std::move(session);
  handlers.agent_up(host, hello, peer.name);
}

void Server::Impl::down(HostId host, const std::string& reason) {
  agents.erase(host);
  handlers.agent_down(host, reason);
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::listen(boost::asio::io_context& io, ServerOptions options,
                                               ServerHandlers handlers) {
  ER_CHECK(handlers.knows && handlers.admit && handlers.agent_up && handlers.agent_frame &&
           handlers.agent_down && handlers.stranger);
  auto impl = std::make_unique<Impl>();
  Impl& self = *impl;
  self.options = std::move(options);
  self.handlers = std::move(handlers);
  const ServerOptions& o = self.options;
  const net::ListenerOptions listening{
      .role = "agent", .job = o.keys.job(), .welcome = o.welcome, .greeting_time = o.greeting_time};
  // The listener dies with Impl, and its handlers are not called after its death.
  net::ListenerHandlers hooks;
  hooks.admit = [&self](const wire::Hello& hello, const net::Peer& peer, wire::Welcome& welcome) {
    return self.admit(hello, peer, welcome);
  };
  hooks.accepted = [&self](std::unique_ptr<net::Session> session, const wire::Hello& hello,
                           const net::Peer& peer) {
    self.accepted(std::move(session), hello, peer);
  };
  hooks.refused = [&self](const net::Peer& peer, const std::string& why) {
    self.handlers.stranger(++self.strangers, fmt::format("{}: {}", peer.name, why));
  };
  const auto find_key = [&self](std::string_view identity) { return self.find_key(identity); };
  auto listener =
      net::listen_tls(io, o.address, o.port, find_key, o.tcp, listening, std::move(hooks));
  if (!listener) return listener.error();
  self.listener = std::move(*listener);
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

std::uint16_t Server::port() const { return impl_->listener ? impl_->listener->port() : 0; }

bool Server::is_up(HostId host) const { return impl_->agents.contains(host); }

void Server::send(HostId host, WorkerId worker, std::string_view payload) {
  const auto found = impl_->agents.find(host);
  if (found != impl_->agents.end()) found->second->send(worker, payload);
}

void Server::send_bulk(HostId host, std::string_view payload) {
  const auto found = impl_->agents.find(host);
  if (found != impl_->agents.end()) found->second->send_bulk(WorkerId{}, payload);
}

void Server::send_to_all(std::string_view payload) {
  for (auto& [host, session] : impl_->agents) session->send(WorkerId{}, payload);
}

void Server::drop(HostId host) { impl_->agents.erase(host); }

void Server::close(HostId host) {
  const auto found = impl_->agents.find(host);
  if (found != impl_->agents.end()) found->second->close();
}

void Server::close() {
  impl_->listener.reset();
  for (auto& [host, session] : impl_->agents) session->close();
}

}  // namespace elasticrun::rendezvous
