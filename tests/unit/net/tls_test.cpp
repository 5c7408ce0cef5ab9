// TLS with the job's key: a peer with the key can talk, a peer without it gets nothing, and the
// listener keeps working.
#include "net/tls.hpp"

#include <doctest/doctest.h>

#include "loop.hpp"
#include "net/sockets.hpp"

using namespace elasticrun;
using namespace elasticrun::net;
using namespace std::chrono_literals;

namespace {

const TlsKey key = key_of("job-1", 0x5a);

struct House {
  boost::asio::io_context io;
  Guestbook book;
  std::unique_ptr<Listener> listener;
  std::string address;

  explicit House(ListenerOptions options = options_of("agent", "job-1"),
                 std::string at = "127.0.0.1")
      : address(std::move(at)) {
    auto result = listen_tls(io, address, 0, only(key), {.user_timeout = 10s}, std::move(options),
                             book.handlers());
    REQUIRE_MESSAGE(result.has_value(), result.error().text);
    listener = std::move(*result);
  }
  Operation dial(const TlsKey& with, Outcome& outcome) {
    return dial_tls(io, address, listener->port(), with, {}, hello_of("agent", "job-1"), 5s,
                    outcome.handler());
  }
  Fd knock() {
    const Result<int> fd = connect_tcp(address, listener->port());
    REQUIRE(fd.has_value());
    return Fd(*fd);
  }
  // Checks that a peer with the key is still accepted.
  void check_undisturbed() {
    Outcome outcome;
    const Operation dialling = dial(key, outcome);
    REQUIRE(run_until(io, [&] { return outcome.calls > 0; }));
    CHECK_MESSAGE(outcome.session, outcome.error);
  }
};

}  // namespace

TEST_CASE("two ends with the key exchange megabytes both ways at once, and close in order") {
  for (const char* address : {"127.0.0.1", "::1"}) {
    // no IPv6 on this machine
    if (std::string(address) == "::1" && !listen_tcp(address, 0)) continue;
    House house(options_of("agent", "job-1"), address);
    Outcome outcome;
    const Operation dialling = house.dial(key, outcome);
    REQUIRE(run_until(house.io, [&] { return outcome.calls > 0; }));
    REQUIRE_MESSAGE(outcome.session, outcome.error);
    REQUIRE(house.book.sessions.size() == 1);
    Session& theirs = *house.book.sessions[0];
    Log log, their_log;
    outcome.session->start(log.handlers());
    theirs.start(their_log.handlers());
    const std::string megabyte(1 << 20, 'm');
    for (int i = 0; i < 8; ++i) {
      outcome.session->send(WorkerId(1), megabyte);
      theirs.send_bulk(WorkerId(2), megabyte);
    }
    theirs.close();
    REQUIRE(run_until(house.io, [&] { return !log.ends.empty() && !their_log.ends.empty(); }));
    CHECK(log.frames.size() == 8);
    CHECK(bool(log.frames.back().second == megabyte));
    CHECK(log.ends == std::vector<std::string>{"the other side closed the connection"});
    CHECK(their_log.ends == std::vector<std::string>{"closed here"});
  }
}

TEST_CASE("a peer with a wrong key or a wrong identity gets nothing") {
  House house;
  for (const TlsKey& wrong : {key_of("job-1", 0x5b), key_of("job-2", 0x5a)}) {
    house.book.refused.clear();
    Outcome outcome;
    const Operation dialling = house.dial(wrong, outcome);
    REQUIRE(run_until(house.io, [&] { return outcome.calls > 0 && !house.book.refused.empty(); }));
    CHECK_FALSE(outcome.session);
    CHECK(outcome.error.find(" does not share our key: ") != std::string::npos);
    CHECK(house.book.refused[0].starts_with("no TLS with our key: "));
    CHECK(house.book.hellos.empty());
  }
  house.check_undisturbed();
}

TEST_CASE("garbage, a truncated ClientHello and a silent connection are rejected") {
  ListenerOptions options = options_of("agent", "job-1");
  options.greeting_time = 100ms;
  House house(std::move(options));
  Fd http = house.knock(), cut = house.knock(), silent = house.knock();
  REQUIRE(raw_write(house.io, http.get(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
  REQUIRE(raw_write(house.io, cut.get(), std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 9)));
  REQUIRE(run_until(house.io, [&] { return house.book.refused.size() == 3; }));
  CHECK(house.book.refused[0].starts_with("no TLS with our key: "));
  CHECK(house.book.refused[1] == "no greeting within 100 ms");
  CHECK(house.book.refused[2] == "no greeting within 100 ms");
  for (const Fd* fd : {&http, &cut, &silent})
    CHECK(run_until(house.io, [&] { return raw_closed(fd->get()); }));
  CHECK(house.book.hellos.empty());
  house.check_undisturbed();
}

TEST_CASE("a burst of agents is served, even when it exceeds the pending-connection limit") {
  ListenerOptions options = options_of("agent", "job-1");
  options.pending_max = 4;
  House house(std::move(options));
  std::vector<Outcome> outcomes(40);
  std::vector<Operation> dials;
  for (Outcome& outcome : outcomes) dials.push_back(house.dial(key, outcome));
  REQUIRE(run_until(house.io, [&] {
    return std::all_of(outcomes.begin(), outcomes.end(), [](const Outcome& o) { return o.calls; });
  }));
  for (const Outcome& outcome : outcomes) CHECK_MESSAGE(outcome.session, outcome.error);
}

TEST_CASE("a dial that cannot succeed says why") {
  House house;
  const std::uint16_t port = house.listener->port();
  const std::string where = "127.0.0.1:" + std::to_string(port);
  Outcome outcome;
  Operation dialling;
  SUBCASE("no listener") {
    house.listener.reset();
    dialling = dial_tls(house.io, "127.0.0.1", port, key, {}, hello_of("agent", "job-1"), 5s,
                        outcome.handler());
    REQUIRE(run_until(house.io, [&] { return outcome.calls > 0; }));
    CHECK(outcome.error == "cannot connect to " + where + ": Connection refused");
  }
  SUBCASE("a name instead of an address") {
    dialling = dial_tls(house.io, "node1", port, key, {}, hello_of("agent", "job-1"), 5s,
                        outcome.handler());
    REQUIRE(run_until(house.io, [&] { return outcome.calls > 0; }));
    CHECK(outcome.error == "'node1' is not a numeric address, as in 10.0.0.1 or fd00::1");
  }
  SUBCASE("a listener that never answers") {
    const Result<int> mute = listen_tcp("127.0.0.1", 0);
    REQUIRE(mute.has_value());
    const Fd owner(*mute);
    dialling = dial_tls(house.io, "127.0.0.1", local_port(*mute), key, {},
                        hello_of("agent", "job-1"), 30ms, outcome.handler());
    REQUIRE(run_until(house.io, [&] { return outcome.calls > 0; }));
    CHECK(outcome.error.find("did not answer within 30 ms") != std::string::npos);
  }
  CHECK(outcome.calls == 1);
}

TEST_CASE("a port in use and an address of another machine give helpful errors") {
  House house;
  const std::uint16_t port = house.listener->port();
  auto second = listen_tls(house.io, "0.0.0.0", port, only(key), {}, options_of("agent", "job-1"),
                           house.book.handlers());
  REQUIRE(second.has_error());
  CHECK(second.error().text == "port " + std::to_string(port) +
                                   " is in use on 0.0.0.0; choose another with --port, or leave "
                                   "it out");
  auto elsewhere = listen_tls(house.io, "192.0.2.1", 0, only(key), {}, options_of("agent", "job-1"),
                              house.book.handlers());
  REQUIRE(elsewhere.has_error());
  CHECK(elsewhere.error().text == "this machine does not have the address 192.0.2.1; see --bind");
}
