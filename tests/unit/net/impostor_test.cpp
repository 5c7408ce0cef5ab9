// Whoever lacks the key of a host gets no byte of work done, on whichever side of the connection.
#include <doctest/doctest.h>
#include <poll.h>

#include <atomic>
#include <functional>
#include <thread>

#include "loop.hpp"
#include "net/stream.hpp"
#include "raw_tls.hpp"
#include "rendezvous/server.hpp"
#include "wire/codec.hpp"
#include "wire/frame.hpp"

using namespace elasticrun;
using namespace elasticrun::net;
using namespace std::chrono_literals;

namespace {

const rendezvous::HostKeys keys("job-1", key_of("master", 1).secret);
const rendezvous::HostKeys other_job("job-1", key_of("master", 2).secret);

TlsKey to_tls(const rendezvous::HostKey& key) { return {key.identity, *from_hex(key.key_hex)}; }
TlsKey key_of_host(std::uint32_t host) { return to_tls(keys.of_agent(HostId(host), 1)); }

wire::Hello agent_hello(HostId host) {
  wire::Hello hello = hello_of("agent", "job-1");
  hello.host = host;
  return hello;
}
wire::Welcome welcome() {
  wire::Welcome welcome;
  welcome.protocol = wire::protocol;
  welcome.version = "9.9.9";
  return welcome;
}

// What host 3's agent makes of whoever listens where its controller should.
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

}  // namespace

TEST_CASE("a server that is not the controller gets no greeting and gives no order") {
  struct Case {
    const char* name;
    RawTlsOptions options;
  };
  const TlsKey wrong_secret{key_of_host(3).identity, Secret{}};
  const Case cases[] = {
      {"a certificate and no key", {.certificate = true}},
      {"a certificate and the key of another job",
       {.key = to_tls(other_job.of_agent(HostId(3), 1)), .certificate = true}},
      {"neither certificate nor key", {}},
      {"the key's name without the key", {.key = wrong_secret}},
      {"the key of another host", {.key = key_of_host(4)}},
      {"the join key", {.key = to_tls(keys.to_join())}},
      {"an older version of TLS", {.certificate = true, .version = TLS1_2_VERSION}},
  };
  for (const Case& one : cases) {
    CAPTURE(one.name);
    std::string heard = "nothing was tried";
    const DialledImpostor agent([&](Fd socket) {
      RawTls tls(std::move(socket), true, one.options);
      if (tls.connected()) tls.write_frame(wire::encode(welcome()));
      heard = tls.read();
    });
    CHECK_FALSE(agent.got_session);
    CHECK(agent.error.find("does not share our key") != std::string::npos);
    CHECK(heard.empty());
  }
}

TEST_CASE("a server that speaks no TLS gets no greeting and gives no order") {
  std::string heard;
  const DialledImpostor agent([&](Fd socket) {
    boost::asio::io_context io;
    std::string frame;
    wire::append_frame(frame, WorkerId(), wire::encode(welcome()));
    raw_write(io, socket.get(), frame);
    run_until(io, [&] {
      heard += raw_read(socket.get());
      return raw_closed(socket.get());
    });
  });
  CHECK_FALSE(agent.got_session);
  CHECK(heard.find("job-1/host") == heard.rfind("job-1/host"));  // the identity, and no greeting
  CHECK(heard.find("protocol") == std::string::npos);
}

// Should TLS ever let one through, the tag of the key over this very connection is missing.
TEST_CASE("a greeting without the proof of the key is no greeting, on the dialling side") {
  std::string recorded;
  const auto greet = [](const std::function<std::string(const RawTls&)>& proof) {
    return DialledImpostor([&](Fd socket) {
      RawTls tls(std::move(socket), true, {.key = key_of_host(3)});
      REQUIRE(tls.connected());
      wire::Welcome answer = welcome();
      answer.proof = proof(tls);
      tls.write_frame(wire::encode(answer));
      tls.read();
    });
  };
  SUBCASE("the right one is taken") {
    const auto agent = greet(
        [&](const RawTls& tls) { return recorded = tls.proof(Side::listener, key_of_host(3)); });
    CHECK_MESSAGE(agent.got_session, agent.error);
    SUBCASE("and not on another connection") {
      CHECK_FALSE(greet([&](const RawTls&) { return recorded; }).got_session);
    }
  }
  SUBCASE("none") {
    const auto agent = greet([](const RawTls&) { return std::string(); });
    CHECK_FALSE(agent.got_session);
    CHECK(agent.error.ends_with("does not share our key: its greeting does not prove it"));
  }
  SUBCASE("our own, sent back") {
    const auto agent =
        greet([](const RawTls& tls) { return tls.proof(Side::dialler, key_of_host(3)); });
    CHECK_FALSE(agent.got_session);
  }
}

TEST_CASE("a server that ends or falls silent in the middle costs the agent its patience at most") {
  const DialledImpostor closed([](Fd socket) {
    RawTls tls(std::move(socket), true, {.key = key_of_host(3)});
    tls.write("\x01\x02\x03");
  });
  CHECK(closed.error.find("did not greet") != std::string::npos);
  const DialledImpostor silent(
      [](Fd socket) {
        RawTls tls(std::move(socket), true, {.key = key_of_host(3)});
        tls.read();
      },
      100ms);
  CHECK(silent.error.find("did not answer within 100 ms") != std::string::npos);
}

namespace {

// A rendezvous with the hosts 0 to 9, and whoever dials it.
struct Rendezvous {
  boost::asio::io_context io;
  std::unique_ptr<rendezvous::Server> server;
  int came_up = 0;
  std::vector<std::string> strangers;

  Rendezvous() {
    rendezvous::ServerOptions options;
    options.address = "127.0.0.1";
    options.welcome = welcome();
    options.welcome.term = Term(1);
    options.keys = keys;
    options.hosts_may_join = true;
    rendezvous::ServerHandlers handlers;
    handlers.knows = [](const rendezvous::KeyOwner& owner) {
      return owner.host.value < 10 && owner.run == 1;
    };
    handlers.admit = [](const wire::Hello&,
                        const rendezvous::KeyOwner& owner) -> Result<rendezvous::KeyOwner> {
      return owner.host == no_host ? rendezvous::KeyOwner{HostId(7), 1} : owner;
    };
    handlers.agent_up = [this](HostId, const wire::Hello&, const std::string&) { ++came_up; };
    handlers.agent_frame = [](HostId, WorkerId, std::string_view) {};
    handlers.agent_away = handlers.agent_dead = [](HostId, const std::string&) {};
    handlers.agent_back = [](HostId) {};
    handlers.stranger = [this](std::uint64_t, const std::string& why) { strangers.push_back(why); };
    server = std::move(*rendezvous::Server::listen(io, options, handlers));
  }
  // True when a host came up. The impostor writes whatever it likes once it is connected.
  bool admits(const RawTlsOptions& options, const std::function<void(RawTls&)>& act) {
    came_up = 0;
    strangers.clear();
    Fd socket(*connect_tcp("127.0.0.1", server->port()));
    std::thread impostor([&] {
      pollfd connecting{socket.get(), POLLOUT, 0};
      ::poll(&connecting, 1, 5000);
      RawTls tls(std::move(socket), false, options);
      if (tls.connected()) act(tls);
      tls.read();
    });
    run_until(io, [&] { return came_up > 0 || !strangers.empty(); });
    const bool admitted = came_up > 0;
    // Its thread may still read what the server has answered.
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

}  // namespace

TEST_CASE("a client without the key of the host that it claims to be is a stranger") {
  Rendezvous rendezvous;
  const auto claim = [&](const TlsKey& key, HostId host) {
    return rendezvous.admits({.key = key},
                             [&](RawTls& tls) { Rendezvous::greet(tls, agent_hello(host), key); });
  };
  CHECK(claim(key_of_host(3), HostId(3)));
  CHECK(claim(to_tls(keys.to_join()), no_host));
  // All others.
  CHECK_FALSE(claim(to_tls(other_job.of_agent(HostId(4), 1)), HostId(4)));
  CHECK_FALSE(claim(to_tls(other_job.to_join()), no_host));
  CHECK_FALSE(claim(key_of_host(3), HostId(4)));
  CHECK(rendezvous.strangers.back().find("it claims to be host 4") != std::string::npos);
  CHECK_FALSE(claim(key_of_host(4), no_host));
  CHECK_FALSE(claim(to_tls(keys.to_join()), HostId(4)));
  CHECK_FALSE(claim(key_of_host(10), HostId(10)));  // no such host
  CHECK_FALSE(claim({"job-1/host/04/1", key_of_host(4).secret}, HostId(4)));
  CHECK_FALSE(claim({"job-1", key_of("master", 1).secret}, HostId(4)));
}

TEST_CASE("a client without TLS, without a key, or with half a greeting is a stranger") {
  Rendezvous rendezvous;
  const auto nothing = [](RawTls&) {};
  CHECK_FALSE(rendezvous.admits({.certificate = true}, nothing));
  CHECK_FALSE(rendezvous.admits({.version = TLS1_2_VERSION}, nothing));
  CHECK_FALSE(rendezvous.admits({.key = key_of_host(4)}, nothing));
  CHECK_FALSE(rendezvous.admits({.key = key_of_host(4)}, [](RawTls& tls) {
    tls.write({"\0\0\0\x10", 4});
  }));
}

TEST_CASE("a greeting without the proof of the key is no greeting, on the listening side") {
  Rendezvous rendezvous;
  std::string recorded;
  const auto send = [](RawTls& tls, const std::string& proof) {
    wire::Hello hello = agent_hello(HostId(4));
    hello.proof = proof;
    tls.write_frame(wire::encode(hello));
  };
  const RawTlsOptions options{.key = key_of_host(4)};
  CHECK_FALSE(rendezvous.admits(options, [&](RawTls& tls) { send(tls, ""); }));
  CHECK(rendezvous.strangers.back().ends_with("its greeting does not prove our key"));
  CHECK_FALSE(rendezvous.admits(
      options, [&](RawTls& tls) { send(tls, tls.proof(Side::listener, key_of_host(4))); }));
  CHECK_FALSE(rendezvous.admits(
      options, [&](RawTls& tls) { recorded = tls.proof(Side::dialler, key_of_host(4)); }));
  CHECK_FALSE(rendezvous.admits(options, [&](RawTls& tls) { send(tls, recorded); }));  // a replay
  CHECK(rendezvous.admits(
      options, [&](RawTls& tls) { send(tls, tls.proof(Side::dialler, key_of_host(4))); }));
}
