// Both sides of the control channel against an impostor: the agent of host 3, which dials, and a
// rendezvous server for the hosts 0 to 9.
#pragma once

#include <doctest/doctest.h>
#include <poll.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "loop.hpp"
#include "net/stream.hpp"
#include "raw_tls.hpp"
#include "rendezvous/server/server.hpp"
#include "wire/codec.hpp"
#include "wire/frame.hpp"

namespace elasticrun::net::testing {

using namespace std::chrono_literals;

inline const rendezvous::server::HostKeys keys("job-1", key_of("master", 1).secret);
inline const rendezvous::server::HostKeys other_job("job-1", key_of("master", 2).secret);

inline TlsKey to_tls(const rendezvous::server::HostKey& key) {
  return {key.identity, *from_hex(key.key_hex)};
}
inline TlsKey key_of_host(std::uint32_t host) { return to_tls(keys.of_agent(HostId(host), 1)); }

inline wire::Hello agent_hello(HostId host) {
  wire::Hello hello = hello_of("agent", "job-1");
  hello.host = host;
  return hello;
}
inline wire::Welcome welcome() {
  wire::Welcome welcome;
  welcome.protocol = wire::protocol;
  welcome.version = "9.9.9";
  return welcome;
}

// Lets the agent of host 3 dial an impostor that listens in place of its controller.
struct DialledImpostor {
  using Act = std::function<void(Fd)>;

  std::string error;  // of the agent
  bool got_session = false;

  explicit DialledImpostor(const Act& act, Duration patience = 2s) {
    boost::asio::io_context io;
    const Fd listening(*listen_tcp("127.0.0.1", 0));
    std::thread impostor([&] { act(accept_one(listening.get())); });
    Outcome outcome;
    const Operation dialling =
        dial_tls(io, "127.0.0.1", local_port(listening.get()), key_of_host(3), {},
                 agent_hello(HostId(3)), patience, outcome.handler());
    CHECK(run_until(io, [&] { return outcome.calls > 0; }));
    got_session = outcome.session != nullptr;
    error = outcome.error;
    impostor.join();
  }
};

// A rendezvous server for the hosts 0 to 9, and an impostor that dials it.
struct Rendezvous {
  boost::asio::io_context io;
  std::unique_ptr<rendezvous::server::Server> server;
  int came_up = 0;
  std::vector<std::string> rejected;

  Rendezvous() {
    rendezvous::server::ServerOptions options;
    options.address = "127.0.0.1";
    options.welcome = welcome();
    options.welcome.term = Term(1);
    options.keys = keys;
    options.hosts_may_join = true;
    rendezvous::server::ServerHandlers handlers;
    handlers.knows = [](const rendezvous::server::KeyOwner& owner) {
      return owner.host.value < 10 && owner.run == 1;
    };
    handlers.admit =
        [](const wire::Hello&,
           const rendezvous::server::KeyOwner& owner) -> Result<rendezvous::server::KeyOwner> {
      return owner.host == no_host ? rendezvous::server::KeyOwner{HostId(7), 1} : owner;
    };
    handlers.agent_up = [this](HostId, const wire::Hello&, const std::string&) { ++came_up; };
    handlers.agent_frame = [](HostId, WorkerId, std::string_view) {};
    handlers.agent_away = handlers.agent_dead = [](HostId, const std::string&) {};
    handlers.agent_back = [](HostId) {};
    handlers.rejected = [this](std::uint64_t, const std::string& why) { rejected.push_back(why); };
    server = std::move(*rendezvous::server::Server::listen(io, options, handlers));
  }
  // Returns true when a host came up. Once it is connected, the impostor writes what `act` says.
  bool admits(const RawTlsOptions& options, const std::function<void(RawTls&)>& act) {
    came_up = 0;
    rejected.clear();
    Fd socket(*connect_tcp("127.0.0.1", server->port()));
    std::thread impostor([&] {
      pollfd connecting{socket.get(), POLLOUT, 0};
      ::poll(&connecting, 1, 5000);
      RawTls tls(std::move(socket), false, options);
      if (tls.connected()) act(tls);
      tls.read();
    });
    run_until(io, [&] { return came_up > 0 || !rejected.empty(); });
    const bool admitted = came_up > 0;
    // The impostor's thread may still read what the server has answered.
    std::atomic<bool> over = false;
    std::thread joiner([&] {
      impostor.join();
      over = true;
    });
    run_until(io, [&] { return over.load(); });
    joiner.join();
    return admitted;
  }
  static void greet(RawTls& tls, wire::Hello hello, const TlsKey& key) {
    hello.proof = tls.proof(Side::dialler, key);
    tls.write_frame(wire::encode(hello));
  }
};

}  // namespace elasticrun::net::testing
