// The rendezvous server: hosts come up once, talk, go down once; strangers are counted.
#include "rendezvous/server.hpp"

#include <doctest/doctest.h>

#include <set>

#include "loop.hpp"

using namespace elasticrun;
using namespace elasticrun::net;
using namespace std::chrono_literals;

namespace {

const rendezvous::HostKeys keys("job-1", key_of("master", 1).secret);

TlsKey to_tls(const rendezvous::HostKey& key) { return {key.identity, *from_hex(key.key_hex)}; }
TlsKey key_of_host(std::uint32_t host) { return to_tls(keys.of_host(HostId(host))); }

struct House {
  boost::asio::io_context io;
  std::vector<std::string> events;
  std::uint64_t strangers = 0;
  std::unique_ptr<rendezvous::Server> server;

  House() {
    rendezvous::ServerOptions options;
    options.address = "127.0.0.1";
    options.welcome = {
        .protocol = wire::protocol, .version = "9.9.9", .term = Term(4), .lease_ms = 7};
    options.keys = keys;
    options.hosts_may_join = true;
    auto result = rendezvous::Server::listen(io, options, handlers());
    REQUIRE_MESSAGE(result.has_value(), result.error().text);
    server = std::move(*result);
  }
  rendezvous::ServerHandlers handlers() {
    const auto name = [](HostId host) { return std::to_string(host.value); };
    return {.knows = [](HostId host) { return host.value < 10; },
            .admit = [](const wire::Hello& hello) -> Result<HostId> {
              if (hello.host != no_host) return hello.host;
              if (hello.name != "n7") return Error{"it is not wanted"};
              return HostId(7);
            },
            .agent_up =
                [this, name](HostId host, const wire::Hello& hello, const std::string&) {
                  events.push_back("up " + name(host) + " pid " + std::to_string(hello.pid));
                },
            .agent_frame =
                [this, name](HostId host, WorkerId worker, std::string_view payload) {
                  events.push_back("frame " + name(host) + " " + std::to_string(worker.value) +
                                   " " + std::string(payload));
                },
            .agent_down =
                [this, name](HostId host, const std::string& reason) {
                  events.push_back("down " + name(host) + ": " + reason);
                },
            .stranger =
                [this](std::uint64_t count, const std::string& why) {
                  strangers = count;
                  events.push_back("stranger " + why.substr(why.find(": ") + 2));
                }};
  }
  static wire::Hello hello(std::uint32_t host) {
    wire::Hello hello = hello_of("agent", "job-1");
    hello.host = HostId(host);
    hello.pid = 5;
    return hello;
  }
  // With the key of the host it claims to be.
  void dial(const wire::Hello& with, Outcome& outcome) {
    dial(with, with.host == no_host ? to_tls(keys.to_join()) : key_of_host(with.host.value),
         outcome);
  }
  void dial(const wire::Hello& with, const TlsKey& key, Outcome& outcome) {
    const Operation dialling =
        dial_tls(io, "127.0.0.1", server->port(), key, {}, with, 5s, outcome.handler());
    REQUIRE(run_until(io, [&] { return outcome.calls > 0; }));
  }
  bool wait(std::size_t count) {
    return run_until(io, [&] { return events.size() >= count; });
  }
};

}  // namespace

TEST_CASE("an agent comes up, talks both ways, goes down, and may come back") {
  House house;
  Outcome first;
  house.dial(House::hello(3), first);
  REQUIRE_MESSAGE(first.session, first.error);
  CHECK(house.server->is_up(HostId(3)));
  Log log;
  first.session->start(log.handlers());
  first.session->send(WorkerId(), "report");
  first.session->send(WorkerId(9), "letter");
  house.server->send(HostId(3), WorkerId(9), "answer");
  house.server->send(HostId(4), WorkerId(), "nobody");
  REQUIRE(house.wait(3));
  REQUIRE(run_until(house.io, [&] { return !log.frames.empty(); }));
  CHECK(log.frames[0] == std::pair<std::uint32_t, std::string>(9, "answer"));
  first.session.reset();
  REQUIRE(house.wait(4));
  CHECK_FALSE(house.server->is_up(HostId(3)));
  Outcome second;
  house.dial(House::hello(3), second);
  CHECK(second.session);
  CHECK(house.events ==
        std::vector<std::string>{"up 3 pid 5", "frame 3 0 report", "frame 3 9 letter",
                                 "down 3: the other side closed the connection", "up 3 pid 5"});
}

TEST_CASE("a host that joins by itself gets its number and the deadlines") {
  House house;
  wire::Hello hello = House::hello(0);
  hello.host = no_host;
  hello.name = "n7";
  Outcome first;
  house.dial(hello, first);
  REQUIRE_MESSAGE(first.session, first.error);
  CHECK(first.welcome.host == HostId(7));
  CHECK(first.welcome.lease_ms == 7);
  REQUIRE(house.wait(1));
  CHECK(house.events == std::vector<std::string>{"up 7 pid 5"});
  Outcome again;
  house.dial(hello, again);
  CHECK(again.error.find("host 7 is connected already") != std::string::npos);
  hello.name = "n8";
  Outcome unwanted;
  house.dial(hello, unwanted);
  CHECK(unwanted.error.find("it is not wanted") != std::string::npos);
}

TEST_CASE("a second connection of a host, another version, a newer term: refused") {
  House house;
  Outcome good;
  house.dial(House::hello(3), good);
  wire::Hello other_version = House::hello(4), newer_term = House::hello(4);
  other_version.version = "1.0.0";
  newer_term.term = Term(5);
  const std::pair<wire::Hello, std::string> cases[] = {
      {House::hello(3), "host 3 is connected already"},
      {other_version, "the controller has version 9.9.9, this agent 1.0.0; use one version"},
      {newer_term, "a newer controller (term 5) has taken over from this one (term 4)"},
  };
  std::uint64_t count = 0;
  for (const auto& [hello, why] : cases) {
    Outcome outcome;
    house.dial(hello, outcome);
    CHECK_FALSE(outcome.session);
    CHECK(outcome.error.ends_with(" refused: " + why));
    CHECK(house.events.back() == "stranger " + why);
    CHECK(house.strangers == ++count);
  }
  CHECK(house.server->is_up(HostId(3)));
}

TEST_CASE("port scans are counted and disturb nobody") {
  House house;
  Outcome good;
  house.dial(House::hello(3), good);
  for (int i = 0; i < 100; ++i) {
    const Result<int> fd = connect_tcp("127.0.0.1", house.server->port());
    REQUIRE(fd.has_value());
    const Fd scan(*fd);
    REQUIRE(raw_write(house.io, *fd, "\r\n\r\n"));
  }
  REQUIRE(run_until(house.io, [&] { return house.strangers == 100; }));
  CHECK(house.server->is_up(HostId(3)));
}

TEST_CASE("close flushes to every host and takes the port back") {
  House house;
  Outcome outcomes[2];
  Log logs[2];
  for (std::uint32_t i = 0; i < 2; ++i) {
    house.dial(House::hello(i), outcomes[i]);
    REQUIRE(outcomes[i].session);
    outcomes[i].session->start(logs[i].handlers());
  }
  const std::uint16_t port = house.server->port();
  for (std::uint32_t i = 0; i < 2; ++i)
    house.server->send(HostId(i), WorkerId(), std::string(1 << 20, 'b'));
  house.server->close();
  REQUIRE(house.wait(4));
  REQUIRE(run_until(house.io, [&] { return !logs[0].ends.empty() && !logs[1].ends.empty(); }));
  for (const Log& log : logs) {
    REQUIRE(log.frames.size() == 1);
    CHECK(log.frames[0].second.size() == 1 << 20);
  }
  CHECK(std::set<std::string>(house.events.begin() + 2, house.events.end()) ==
        std::set<std::string>{"down 0: closed here", "down 1: closed here"});
  const Result<int> again = listen_tcp("127.0.0.1", port);
  REQUIRE(again.has_value());
  const Fd owner(*again);
}

TEST_CASE("one host can be closed alone") {
  House house;
  Outcome outcomes[2];
  for (std::uint32_t i = 0; i < 2; ++i) house.dial(House::hello(i), outcomes[i]);
  Log log;
  outcomes[0].session->start(log.handlers());
  house.server->close(HostId(0));
  REQUIRE(house.wait(3));
  CHECK(house.events.back() == "down 0: closed here");
  CHECK(house.server->is_up(HostId(1)));
}
