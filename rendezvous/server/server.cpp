// See server.hpp.
#include "rendezvous/server/server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/check.hpp"
#include "net/resumable.hpp"
#include "wire/codec.hpp"
#include "wire/frame.hpp"

namespace elasticrun::rendezvous::server {

struct Server::Impl {
  // An agent from its first greeting until its host is dropped.
  struct Agent {
    std::uint32_t run = 0;
    std::unique_ptr<net::Resumable> link;
    bool retired = false;
  };

  ServerOptions options;
  ServerHandlers handlers;
  std::unique_ptr<net::Listener> listener;
  std::map<HostId, Agent> agents;
  std::uint64_t rejected = 0;

  std::optional<net::Secret> find_key(std::string_view identity) const;
  Result<void> admit(const wire::Hello& hello, const net::Peer& peer, wire::Welcome& welcome);
  Result<void> admit_agent(const wire::Hello& hello, const KeyOwner& owner, wire::Welcome& welcome);
  Result<void> admit_again(const KeyOwner& owner, wire::Welcome& welcome);
  Result<void> admit_watchdog(const KeyOwner& owner) const;
  void accepted(std::unique_ptr<net::Session> session, const wire::Hello& hello,
                const net::Peer& peer);
  std::unique_ptr<net::Resumable> make_link(HostId host);
  void lost(HostId host, const std::string& reason);
};

std::optional<net::Secret> Server::Impl::find_key(std::string_view identity) const {
  const auto owner = options.keys.owner(identity);
  if (!owner) return std::nullopt;
  const bool joins = owner->host == no_host;
  if (joins ? !options.hosts_may_join : !handlers.knows(*owner)) return std::nullopt;
  return options.keys.secret(identity);
}

Result<void> Server::Impl::admit(const wire::Hello& hello, const net::Peer& peer,
                                 wire::Welcome& welcome) {
  const wire::Welcome& ours = options.welcome;
  const auto owner = options.keys.owner(peer.identity);
  if (!owner || owner->host != hello.host)
    return Error{fmt::format("it claims to be host {}, which '{}' is not the key of",
                             hello.host.value, peer.identity)};
  if (hello.version != ours.version)
    return Error{fmt::format("the controller has version {}, this agent {}; use one version",
                             ours.version, hello.version)};
  if (hello.term > ours.term)
    return Error{fmt::format("a newer controller (term {}) has taken over from this one (term {})",
                             hello.term.value, ours.term.value)};
  if (hello.role == "watchdog") return admit_watchdog(*owner);
  return hello.resumes < 0 ? admit_agent(hello, *owner, welcome) : admit_again(*owner, welcome);
}

// The report of a watchdog matters only if its agent is up. The end of an agent that is not up, or
// was given up, changes nothing.
Result<void> Server::Impl::admit_watchdog(const KeyOwner& owner) const {
  const auto found = agents.find(owner.host);
  if (found != agents.end() && found->second.run == owner.run) return {};
  return Error{fmt::format("host {} is not up", owner.host.value)};
}

Result<void> Server::Impl::admit_agent(const wire::Hello& hello, const KeyOwner& owner,
                                       wire::Welcome& welcome) {
  const Result<KeyOwner> admitted = handlers.admit(hello, owner);
  if (!admitted) return admitted.error();
  if (agents.contains(admitted->host))
    return Error{fmt::format("host {} is connected already", admitted->host.value)};
  welcome.host = admitted->host;
  if (owner.host == no_host) {
    HostKey own = options.keys.of_agent(admitted->host, admitted->run);
    welcome.identity = std::move(own.identity);
    welcome.key_hex = std::move(own.key_hex);
  }
  agents[admitted->host] = {admitted->run, nullptr};
  return {};
}

Result<void> Server::Impl::admit_again(const KeyOwner& owner, wire::Welcome& welcome) {
  const auto found = agents.find(owner.host);
  if (found == agents.end() || found->second.run != owner.run)
    return Error{
        fmt::format("host {} was given up; whatever runs there has to end", owner.host.value)};
  if (!found->second.link->resumable())
    return Error{fmt::format("host {} lacks orders that were not kept", owner.host.value)};
  // The welcome says how many frames were received, so none may be received over the old connection
  // after this.
  found->second.link->hang_up();
  welcome.received = static_cast<std::int64_t>(found->second.link->received());
  return {};
}

std::unique_ptr<net::Resumable> Server::Impl::make_link(HostId host) {
  // The link is destroyed with this object, or when its host is dropped: `this` outlives it.
  return std::make_unique<net::Resumable>(net::Resumable::Handlers{
      .on_frame = [this, host](
                      WorkerId worker,
                      std::string_view payload) { handlers.agent_frame(host, worker, payload); },
      .on_lost = [this, host](const std::string& reason) { lost(host, reason); },
      .keep_bulk = false});
}

void Server::Impl::lost(HostId host, const std::string& reason) {
  if (!agents.at(host).retired) return handlers.agent_away(host, reason);
  agents.erase(host);
}

void Server::Impl::accepted(std::unique_ptr<net::Session> session, const wire::Hello& hello,
                            const net::Peer& peer) {
  const HostId host = hello.host;
  if (hello.role == "watchdog") {
    session->close();
    return handlers.agent_dead(host, hello.reason);
  }
  Agent& agent = agents.at(host);
  const bool is_new = !agent.link;
  if (is_new) agent.link = make_link(host);
  const auto received = static_cast<std::uint64_t>(std::max<std::int64_t>(hello.resumes, 0));
  if (!agent.link->attach(std::move(session), received))
    return handlers.agent_away(host, "its connection cannot be resumed");
  is_new ? handlers.agent_up(host, hello, peer.name) : handlers.agent_back(host);
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::listen(boost::asio::io_context& io, ServerOptions options,
                                               ServerHandlers handlers) {
  ER_CHECK(handlers.knows && handlers.admit && handlers.agent_up && handlers.agent_frame &&
           handlers.agent_away && handlers.agent_back && handlers.agent_dead && handlers.rejected);
  auto impl = std::make_unique<Impl>();
  Impl& self = *impl;
  self.options = std::move(options);
  self.handlers = std::move(handlers);
  const ServerOptions& o = self.options;
  const net::ListenerOptions listening{.roles = {"agent", "watchdog"},
                                       .job = o.keys.job(),
                                       .welcome = o.welcome,
                                       .greeting_time = o.greeting_time};
  // The listener is destroyed with Impl, and its handlers are not called after that.
  net::ListenerHandlers hooks;
  hooks.admit = [&self](const wire::Hello& hello, const net::Peer& peer, wire::Welcome& welcome) {
    return self.admit(hello, peer, welcome);
  };
  hooks.accepted = [&self](std::unique_ptr<net::Session> session, const wire::Hello& hello,
                           const net::Peer& peer) {
    self.accepted(std::move(session), hello, peer);
  };
  hooks.refused = [&self](const net::Peer& peer, const std::string& why) {
    self.handlers.rejected(++self.rejected, fmt::format("{}: {}", peer.name, why));
  };
  const auto find_key = [&self](std::string_view identity) { return self.find_key(identity); };
  Result<std::unique_ptr<net::Listener>> listener = Error{"no port"};
  for (std::uint32_t port = o.port; !listener && port <= std::max(o.port, o.port_last); ++port)
    listener = net::listen_tls(io, o.address, static_cast<std::uint16_t>(port), find_key, o.tcp,
                               listening, hooks);
  if (!listener) return listener.error();
  self.listener = std::move(*listener);
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

std::uint16_t Server::port() const { return impl_->listener ? impl_->listener->port() : 0; }

void Server::send(HostId host, WorkerId worker, std::string_view payload) {
  const auto found = impl_->agents.find(host);
  if (found != impl_->agents.end()) found->second.link->send(worker, payload);
}

void Server::send_message(HostId host, const std::vector<WorkerId>& workers,
                          std::string_view message) {
  if (workers.size() == 1) return send(host, workers.front(), message);
  send(host, wire::several_workers, wire::for_several(workers, message));
}

void Server::send_heartbeat(HostId host, wire::agent::Heartbeat heartbeat) {
  const auto found = impl_->agents.find(host);
  if (found == impl_->agents.end()) return;
  heartbeat.received = found->second.link->received();
  found->second.link->send_passing(WorkerId{}, wire::encode(wire::agent::ToAgent(heartbeat)));
}

void Server::acknowledged(HostId host, std::uint64_t count) {
  const auto found = impl_->agents.find(host);
  if (found != impl_->agents.end()) found->second.link->acknowledged(count);
}

void Server::send_bulk(HostId host, std::string_view payload) {
  const auto found = impl_->agents.find(host);
  if (found != impl_->agents.end()) found->second.link->send_bulk(WorkerId{}, payload);
}

void Server::send_to_all(std::string_view payload) {
  for (auto& [host, agent] : impl_->agents) agent.link->send(WorkerId{}, payload);
}

void Server::retire(HostId host) {
  const auto found = impl_->agents.find(host);
  if (found == impl_->agents.end()) return;
  found->second.retired = true;
  if (!found->second.link->attached()) impl_->agents.erase(found);
}

void Server::drop(HostId host) { impl_->agents.erase(host); }

void Server::close() {
  impl_->listener.reset();
  for (auto& [host, agent] : impl_->agents) agent.link->close();
}

}  // namespace elasticrun::rendezvous::server
