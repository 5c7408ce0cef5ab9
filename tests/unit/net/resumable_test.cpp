// A resumable link over connections that break: nothing is lost, and nothing arrives twice.
#include "net/resumable.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>

#include "base/rng.hpp"
#include "loop.hpp"
#include "net/stream.hpp"

using namespace elasticrun;
using namespace elasticrun::net;
using namespace std::chrono_literals;

namespace {

// One end: the frames that it has received, and a link that may lose its connection.
struct End {
  std::vector<std::string> heard;
  int losses = 0;
  int drained = 0;
  Resumable link{
      {.on_frame = [this](WorkerId, std::string_view payload) { heard.emplace_back(payload); },
       .on_lost = [this](const std::string&) { ++losses; },
       .on_bulk_drained = [this] { ++drained; }}};
};

struct Pair {
  boost::asio::io_context io;
  End a, b;
  int fds[2] = {-1, -1};  // of the present connection, for tests that break it

  Pair() { connect(); }
  // Makes a new connection; both ends state how much they have received, as greetings do.
  void connect() {
    auto [first, second] = socket_pair();
    fds[0] = first.get();
    fds[1] = second.get();
    a.link.hang_up();
    b.link.hang_up();
    const std::uint64_t a_has = a.link.received(), b_has = b.link.received();
    CHECK(a.link.attach(std::make_unique<Session>(io, make_plain_stream(io, first.release())),
                        b_has));
    CHECK(b.link.attach(std::make_unique<Session>(io, make_plain_stream(io, second.release())),
                        a_has));
  }
  void cut() {
    for (const int fd : fds) ::shutdown(fd, SHUT_RDWR);
  }
};

std::vector<std::string> numbers(int count) {
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) texts.push_back(std::to_string(i));
  return texts;
}

}  // namespace

TEST_CASE("frames sent before, during and after a lost connection arrive once, in order") {
  Pair pair;
  Rng rng(1);
  constexpr int count = 3000;
  int cuts = 0;
  for (int i = 0; i < count; ++i) {
    pair.a.link.send(WorkerId(1), std::to_string(i));
    pair.b.link.send(WorkerId(2), std::to_string(i));
    if (rng.chance(0.3)) pair.io.poll_one();
    if (rng.chance(0.1)) pair.a.link.acknowledged(pair.b.link.received());
    if (rng.chance(0.02)) {
      ++cuts;
      if (rng.chance(0.5)) pair.cut();
      if (rng.chance(0.5)) pair.io.poll();
      if (rng.chance(0.9)) pair.connect();
    }
    if (!pair.a.link.attached() || !pair.b.link.attached()) pair.connect();
    pair.io.restart();
  }
  pair.connect();
  REQUIRE(run_until(pair.io,
                    [&] { return pair.a.heard.size() >= count && pair.b.heard.size() >= count; }));
  CHECK(cuts > 20);
  CHECK(bool(pair.a.heard == numbers(count)));
  CHECK(bool(pair.b.heard == numbers(count)));
}

TEST_CASE("passing frames belong to one connection only, and are not counted") {
  Pair pair;
  pair.a.link.send_passing(WorkerId(), "heartbeat");
  pair.a.link.send(WorkerId(), "message");
  REQUIRE(run_until(pair.io, [&] { return pair.b.heard.size() == 2; }));
  CHECK(pair.b.link.received() == 1);
  pair.cut();
  REQUIRE(run_until(pair.io, [&] { return pair.a.losses + pair.b.losses == 2; }));
  pair.a.link.send_passing(WorkerId(), "heartbeat");
  pair.a.link.send(WorkerId(), "another");
  pair.connect();
  REQUIRE(run_until(pair.io, [&] { return pair.b.heard.size() == 3; }));
  CHECK(pair.b.heard == std::vector<std::string>{"heartbeat", "message", "another"});
  CHECK(pair.b.link.received() == 2);
}

TEST_CASE("bulk frames wait while there is no connection, and unwritten ones go over the next") {
  Pair pair;
  CHECK_FALSE(pair.a.link.bulk_full());
  pair.a.link.send_bulk(WorkerId(), "output");
  pair.cut();  // before the loop has run: nothing is written
  REQUIRE(run_until(pair.io, [&] { return pair.a.losses + pair.b.losses == 2; }));
  CHECK(pair.a.link.bulk_full());
  pair.connect();
  CHECK_FALSE(pair.a.link.bulk_full());
  pair.a.link.send_bulk(WorkerId(), "more");
  REQUIRE(
      run_until(pair.io, [&] { return !pair.b.heard.empty() && pair.b.heard.back() == "more"; }));
  CHECK(pair.b.link.received() == 0);
}

TEST_CASE("a peer that acknowledges more than it was sent is rejected") {
  Pair pair;
  pair.a.link.send(WorkerId(), "one");
  auto [first, second] = socket_pair();
  CHECK_FALSE(pair.a.link.attach(
      std::make_unique<Session>(pair.io, make_plain_stream(pair.io, first.release())), 2));
  CHECK_FALSE(pair.a.link.attached());
}

TEST_CASE("a handler may destroy the link that calls it") {
  boost::asio::io_context io;
  std::unique_ptr<Resumable> link;
  bool lost = false;
  link = std::make_unique<Resumable>(
      Resumable::Handlers{.on_frame = [&](WorkerId, std::string_view) { link.reset(); },
                          .on_lost =
                              [&](const std::string&) {
                                lost = true;
                                link.reset();
                              }});
  auto [first, second] = socket_pair();
  link->attach(std::make_unique<Session>(io, make_plain_stream(io, first.release())), 0);
  SUBCASE("in on_frame") {
    Session peer(io, make_plain_stream(io, second.release()));
    peer.send(WorkerId(), "x");
    CHECK(run_until(io, [&] { return !link; }));
  }
  SUBCASE("in on_lost") {
    ::shutdown(second.get(), SHUT_RDWR);
    CHECK(run_until(io, [&] { return lost; }));
  }
}
