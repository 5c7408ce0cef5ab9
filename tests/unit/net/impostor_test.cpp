// A peer without the key of a host achieves nothing, on either side of the connection.
#include "impostor.hpp"

using namespace elasticrun;
using namespace elasticrun::net;
using namespace elasticrun::net::testing;

TEST_CASE("a server that is not the controller gets no greeting and cannot give orders") {
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

TEST_CASE("a server that does not speak TLS gets no greeting and cannot give orders") {
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
  // the identity appears once, and no greeting follows
  CHECK(heard.find("job-1/host") == heard.rfind("job-1/host"));
  CHECK(heard.find("protocol") == std::string::npos);
}

// If TLS ever let an impostor through, it still could not compute the key's tag for this
// connection.
TEST_CASE("the dialling side rejects a greeting that does not prove the key") {
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
  SUBCASE("a correct proof is accepted") {
    const auto agent = greet(
        [&](const RawTls& tls) { return recorded = tls.proof(Side::listener, key_of_host(3)); });
    CHECK_MESSAGE(agent.got_session, agent.error);
    SUBCASE("but not on another connection") {
      CHECK_FALSE(greet([&](const RawTls&) { return recorded; }).got_session);
    }
  }
  SUBCASE("no proof") {
    const auto agent = greet([](const RawTls&) { return std::string(); });
    CHECK_FALSE(agent.got_session);
    CHECK(agent.error.ends_with("does not share our key: its greeting does not prove it"));
  }
  SUBCASE("our own proof, sent back") {
    const auto agent =
        greet([](const RawTls& tls) { return tls.proof(Side::dialler, key_of_host(3)); });
    CHECK_FALSE(agent.got_session);
  }
}

TEST_CASE("a server that closes or goes silent in the greeting costs an agent only its timeout") {
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

TEST_CASE("a client without the key of the host that it claims to be is rejected") {
  Rendezvous rendezvous;
  const auto claim = [&](const TlsKey& key, HostId host) {
    return rendezvous.admits({.key = key},
                             [&](RawTls& tls) { Rendezvous::greet(tls, agent_hello(host), key); });
  };
  CHECK(claim(key_of_host(3), HostId(3)));
  CHECK(claim(to_tls(keys.to_join()), no_host));
  // All other claims are rejected.
  CHECK_FALSE(claim(to_tls(other_job.of_agent(HostId(4), 1)), HostId(4)));
  CHECK_FALSE(claim(to_tls(other_job.to_join()), no_host));
  CHECK_FALSE(claim(key_of_host(3), HostId(4)));
  CHECK(rendezvous.rejected.back().find("it claims to be host 4") != std::string::npos);
  CHECK_FALSE(claim(key_of_host(4), no_host));
  CHECK_FALSE(claim(to_tls(keys.to_join()), HostId(4)));
  CHECK_FALSE(claim(key_of_host(10), HostId(10)));  // no such host
  CHECK_FALSE(claim({"job-1/host/04/1", key_of_host(4).secret}, HostId(4)));
  CHECK_FALSE(claim({"job-1", key_of("master", 1).secret}, HostId(4)));
}

TEST_CASE("a client without TLS, without a key, or with half a greeting is rejected") {
  Rendezvous rendezvous;
  const auto nothing = [](RawTls&) {};
  CHECK_FALSE(rendezvous.admits({.certificate = true}, nothing));
  CHECK_FALSE(rendezvous.admits({.version = TLS1_2_VERSION}, nothing));
  CHECK_FALSE(rendezvous.admits({.key = key_of_host(4)}, nothing));
  CHECK_FALSE(rendezvous.admits({.key = key_of_host(4)}, [](RawTls& tls) {
    tls.write({"\0\0\0\x10", 4});
  }));
}

TEST_CASE("the listening side rejects a greeting that does not prove the key") {
  Rendezvous rendezvous;
  std::string recorded;
  const auto send = [](RawTls& tls, const std::string& proof) {
    wire::Hello hello = agent_hello(HostId(4));
    hello.proof = proof;
    tls.write_frame(wire::encode(hello));
  };
  const RawTlsOptions options{.key = key_of_host(4)};
  CHECK_FALSE(rendezvous.admits(options, [&](RawTls& tls) { send(tls, ""); }));
  CHECK(rendezvous.rejected.back().ends_with("its greeting does not prove our key"));
  CHECK_FALSE(rendezvous.admits(
      options, [&](RawTls& tls) { send(tls, tls.proof(Side::listener, key_of_host(4))); }));
  CHECK_FALSE(rendezvous.admits(
      options, [&](RawTls& tls) { recorded = tls.proof(Side::dialler, key_of_host(4)); }));
  CHECK_FALSE(rendezvous.admits(options, [&](RawTls& tls) { send(tls, recorded); }));  // a replay
  CHECK(rendezvous.admits(
      options, [&](RawTls& tls) { send(tls, tls.proof(Side::dialler, key_of_host(4))); }));
}
