// The rendezvous server: hosts come up once, exchange frames, go down once; rejected peers count.
#include "rendezvous/server/server.hpp"

#include <doctest/doctest.h>

#include <set>

#include "loop.hpp"

using namespace elasticrun;
using namespace elasticrun::net;
using namespace std::chrono_literals;

namespace {

const rendezvous::server::HostKeys keys("job-1", key_of("master", 1).secret);

TlsKey to_tls(const rendezvous::server::HostKey& key) {
  return {key.identity, *from_hex(key.key_hex)};
}
TlsKey key_of_host(std::uint32_t host) { return to_tls(keys.of_agent(HostId(host), 1)); }

struct House {
  boost::asio::io_context io;
  std::vector<std::string> events;
  std::uint64_t rejected = 0;
  std::unique_ptr<rendezvous::server::Server> server;

  House() {
    rendezvous::server::ServerOptions options;
    options.address = "127.0.0.1";
    options.welcome = {
        .protocol = wire::protocol, .version = "9.9.9", .term = Term(4), .lease_ms = 7};
    options.keys = keys;
    options.hosts_may_join = true;
    auto result = rendezvous::server::Server::listen(io, options, handlers());
    REQUIRE_MESSAGE(result.has_value(), result.error().text);
    server = std::move(*result);
  }
  rendezvous::server::ServerHandlers handlers() {
    const auto name = [](HostId host) { return std::to_string(host.value); };
    return {
        .knows = [](const rendezvous::server::KeyOwner& owner) { return owner.host.value < 10; },
        .admit = [](const wire::Hello& hello, const rendezvous::server::KeyOwner& owner)
            -> Result<rendezvous::server::KeyOwner> {
          if (owner.host != no_host) return owner;
          if (hello.name != "n7") return Error{"it is not wanted"};
          return rendezvous::server::KeyOwner{HostId(7), 1};
        },
        .agent_up =
            [this, name](HostId host, const wire::Hello& hello, const std::string&) {
              events.push_back("up " + name(host) + " pid " + std::to_string(hello.pid));
            },
        .agent_frame =
            [this, name](HostId host, WorkerId worker, std::string_view payload) {
              events.push_back("frame " + name(host) + " " + std::to_string(worker.value) + " " +
                               std::string(payload));
            },
        .agent_away =
            [this, name](HostId host, const std::string& reason) {
              events.push_back("away " + name(host) + ": " + reason);
            },
        .agent_back = [this, name](HostId host) { events.push_back("back " + name(host)); },
        .agent_dead =
            [this, name](HostId host, const std::string& reason) {
              events.push_back("dead " + name(host) + ": " + reason);
            },
        .rejected =
            [this](std::uint64_t count, const std::string& why) {
              rejected = count;
              events.push_back("stranger " + why.substr(why.find(": ") + 2));
            }};
  }
  static wire::Hello hello(std::uint32_t host) {
    wire::Hello hello = hello_of("agent", "job-1");
    hello.host = HostId(host);
    hello.pid = 5;
    return hello;
  }
  // Dials with the key of the host that the greeting claims.
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

TEST_CASE("an agent comes up, exchanges frames, goes away, and is replaced once it was dropped") {
  House house;
  Outcome first;
  house.dial(House::hello(3), first);
  REQUIRE_MESSAGE(first.session, first.error);
  Log log;
  first.session->start(log.handlers());
  first.session->send(WorkerId(), "report");
  first.session->send(WorkerId(9), "message");
  house.server->send(HostId(3), WorkerId(9), "answer");
  house.server->send(HostId(4), WorkerId(), "nobody");
  REQUIRE(house.wait(3));
  REQUIRE(run_until(house.io, [&] { return !log.frames.empty(); }));
  CHECK(log.frames[0] == std::pair<std::uint32_t, std::string>(9, "answer"));
  first.session.reset();
  REQUIRE(house.wait(4));
  Outcome too_early;
  house.dial(House::hello(3), too_early);
  CHECK(too_early.error.find("host 3 is connected already") != std::string::npos);
  house.server->drop(HostId(3));
  Outcome second;
  house.dial(House::hello(3), second);
  CHECK(second.session);
  CHECK(house.events ==
        std::vector<std::string>{"up 3 pid 5", "frame 3 0 report", "frame 3 9 message",
                                 "away 3: the other side closed the connection",
                                 "stranger host 3 is connected already", "up 3 pid 5"});
}

TEST_CASE("an agent that reconnects continues where it was") {
  House house;
  Outcome first, second;
  house.dial(House::hello(3), first);
  Log log;
  first.session->start(log.handlers());
  first.session->send(WorkerId(), "one");
  REQUIRE(house.wait(2));
  first.session.reset();
  REQUIRE(house.wait(3));
  house.server->send(HostId(3), WorkerId(9), "meanwhile");
  house.server->send_heartbeat(HostId(3), {});  // must not be delivered late
  wire::Hello again = House::hello(3);
  again.resumes = 0;
  house.dial(again, second);
  REQUIRE_MESSAGE(second.session, second.error);
  CHECK(second.welcome.received == 1);
  Log more;
  second.session->start(more.handlers());
  second.session->send(WorkerId(), "two");
  REQUIRE(run_until(house.io, [&] { return !more.frames.empty(); }));
  REQUIRE(house.wait(5));
  CHECK(more.frames == std::vector<std::pair<std::uint32_t, std::string>>{{9, "meanwhile"}});
  CHECK(house.events == std::vector<std::string>{"up 3 pid 5", "frame 3 0 one",
                                                 "away 3: the other side closed the connection",
                                                 "back 3", "frame 3 0 two"});
}

TEST_CASE("an agent that was given up, or was never there, cannot resume") {
  House house;
  Outcome good;
  house.dial(House::hello(3), good);
  wire::Hello again = House::hello(3);
  again.resumes = 0;
  const std::string given_up = "host 3 was given up; whatever runs there has to end";
  SUBCASE("it was dropped") { house.server->drop(HostId(3)); }
  SUBCASE("another agent was started there") {
    house.server->drop(HostId(3));
    Outcome other;
    house.dial(House::hello(3), to_tls(keys.of_agent(HostId(3), 2)), other);
    CHECK(other.session);
  }
  Outcome outcome;
  house.dial(again, outcome);
  CHECK(outcome.session == nullptr);
  CHECK(outcome.error.ends_with(given_up));
  wire::Hello nobody = House::hello(4);
  nobody.resumes = 0;
  Outcome never_there;
  house.dial(nobody, never_there);
  CHECK(never_there.error.ends_with("host 4 was given up; whatever runs there has to end"));
}

TEST_CASE("a watchdog can report only its own agent as dead") {
  House house;
  Outcome agent;
  house.dial(House::hello(3), agent);
  wire::Hello word = House::hello(3);
  word.role = "watchdog";
  word.reason = "killed";
  Outcome wrong_run, absent, right;
  house.dial(word, to_tls(keys.of_agent(HostId(3), 2)), wrong_run);
  CHECK(wrong_run.error.ends_with("host 3 is not up"));
  house.dial(word, right);
  REQUIRE(house.wait(3));
  CHECK(house.events.back() == "dead 3: killed");
  word.host = HostId(4);
  house.dial(word, absent);
  CHECK(absent.error.ends_with("host 4 is not up"));
}

TEST_CASE("the last frames of a retired agent are delivered, and the next agent can come up") {
  House house;
  Outcome first, second;
  house.dial(House::hello(3), first);
  Log log;
  first.session->start(log.handlers());
  house.server->retire(HostId(3));
  first.session->send_bulk(WorkerId(), "last words");
  first.session->close();
  REQUIRE(house.wait(2));
  REQUIRE(run_until(house.io, [&] { return !log.ends.empty(); }));
  house.dial(House::hello(3), second);
  CHECK_MESSAGE(second.session, second.error);
  CHECK(house.events ==
        std::vector<std::string>{"up 3 pid 5", "frame 3 0 last words", "up 3 pid 5"});
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

TEST_CASE("a second connection of a host, another version and a newer term are refused") {
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
    CHECK(house.rejected == ++count);
  }
}

TEST_CASE("port scans are counted and disturb no agent") {
  House house;
  Outcome good;
  house.dial(House::hello(3), good);
  for (int i = 0; i < 100; ++i) {
    const Result<int> fd = connect_tcp("127.0.0.1", house.server->port());
    REQUIRE(fd.has_value());
    const Fd scan(*fd);
    REQUIRE(raw_write(house.io, *fd, "\r\n\r\n"));
  }
  REQUIRE(run_until(house.io, [&] { return house.rejected == 100; }));
}

TEST_CASE("close flushes to every host and releases the port") {
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
        std::set<std::string>{"away 0: closed here", "away 1: closed here"});
  const Result<int> again = listen_tcp("127.0.0.1", port);
  REQUIRE(again.has_value());
  const Fd owner(*again);
}
