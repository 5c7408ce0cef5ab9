// A session over a socket pair, against another session or a raw descriptor that misbehaves.
#include "net/session.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "loop.hpp"
#include "wire/frame.hpp"

using namespace elasticrun;
using namespace elasticrun::net;
using namespace std::chrono_literals;

namespace {

// Two sessions that are connected to each other.
struct Two {
  boost::asio::io_context io;
  std::unique_ptr<Session> a, b;
  Log log_a, log_b;

  Two() {
    auto [first, second] = socket_pair();
    a = adopt(io, first.release());
    b = adopt(io, second.release());
  }
  void start() {
    a->start(log_a.handlers());
    b->start(log_b.handlers());
  }
};

// One session, and the raw descriptor of its peer.
struct One {
  boost::asio::io_context io;
  Fd raw;
  std::unique_ptr<Session> session;
  Log log;

  explicit One(int send_buffer = 0) {
    auto [first, second] = socket_pair();
    if (send_buffer > 0)
      ::setsockopt(first.get(), SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof send_buffer);
    session = adopt(io, first.release());
    raw = std::move(second);
  }
};

std::string frame_of(std::uint32_t worker, std::string_view payload) {
  std::string bytes;
  wire::append_frame(bytes, WorkerId(worker), payload);
  return bytes;
}

// Reads raw bytes until `count` frames are complete; returns their worker ids.
std::vector<std::uint32_t> read_frames(One& one, std::size_t count) {
  wire::FrameReader reader(wire::frame_bytes_max);
  std::vector<std::uint32_t> workers;
  run_until(one.io, [&] {
    reader.feed(raw_read(one.raw.get()));
    while (true) {
      auto frame = reader.next();
      if (!frame || !*frame) break;
      workers.push_back((*frame)->worker.value);
    }
    return workers.size() >= count;
  });
  return workers;
}

}  // namespace

TEST_CASE("frames arrive in order, both ways, including those sent before start") {
  Two two;
  two.a->send(WorkerId(), "first");
  two.a->send(WorkerId(7), "");
  two.start();
  two.b->send(WorkerId(8), "back");
  two.a->send(WorkerId(), "third");
  REQUIRE(run_until(two.io,
                    [&] { return two.log_b.frames.size() == 3 && two.log_a.frames.size() == 1; }));
  CHECK(two.log_b.frames ==
        std::vector<std::pair<std::uint32_t, std::string>>{{0, "first"}, {7, ""}, {0, "third"}});
  CHECK(two.log_a.frames == std::vector<std::pair<std::uint32_t, std::string>>{{8, "back"}});
}

TEST_CASE("frames of a megabyte and of the maximum size pass") {
  Two two;
  two.start();
  const std::string large(1 << 20, 'm'), largest(wire::frame_bytes_max, 'x');
  for (int i = 0; i < 3; ++i) two.a->send(WorkerId(1), large);
  two.a->send(WorkerId(2), largest);
  REQUIRE(run_until(two.io, [&] { return two.log_b.frames.size() == 4; }));
  CHECK(bool(two.log_b.frames[2].second == large));
  CHECK(bool(two.log_b.frames[3].second == largest));
}

TEST_CASE("a stream that arrives byte by byte is split into frames") {
  One one;
  one.session->start(one.log.handlers());
  for (const char c : frame_of(3, "abc") + frame_of(4, "d")) {
    REQUIRE(raw_write(one.io, one.raw.get(), std::string_view(&c, 1)));
    one.io.restart();
    one.io.poll();
  }
  REQUIRE(run_until(one.io, [&] { return one.log.frames.size() == 2; }));
  CHECK(one.log.frames[1] == std::pair<std::uint32_t, std::string>(4, "d"));
}

TEST_CASE("control frames overtake bulk frames when the reader is blocked") {
  One one(16 << 10);
  one.session->start(one.log.handlers());
  constexpr std::size_t bulk_frames = 60;
  for (std::size_t i = 0; i < bulk_frames; ++i)
    one.session->send_bulk(WorkerId(1), std::string(16 << 10, 'b'));
  one.io.poll();  // the kernel has taken what it takes
  one.session->send(WorkerId(2), "control");
  one.io.poll();
  const std::vector<std::uint32_t> workers = read_frames(one, bulk_frames + 1);
  REQUIRE(workers.size() == bulk_frames + 1);
  const auto place = std::find(workers.begin(), workers.end(), 2u) - workers.begin();
  // Behind one gathered write and the kernel's buffer, but ahead of everything else.
  CHECK(place <= 12);
}

TEST_CASE("bulk reports when it is full, and when there is room again") {
  One one(16 << 10);
  int drained = 0;
  Handlers handlers = one.log.handlers();
  handlers.on_bulk_drained = [&] { ++drained; };
  one.session->start(std::move(handlers));
  const std::string chunk(64 << 10, 'b');
  std::size_t sent = 0;
  while (!one.session->bulk_full()) {
    one.session->send_bulk(WorkerId(1), chunk);
    ++sent;
  }
  CHECK(sent == wire::bulk_queue_high / chunk.size());
  one.io.poll();
  CHECK(read_frames(one, 3).size() >= 3);
  one.io.poll();
  CHECK(drained == 0);  // there is some room, but less than half
  CHECK(one.session->bulk_full());
  run_until(one.io, [&] { return raw_read(one.raw.get()).empty() && drained > 0; });
  REQUIRE(run_until(one.io, [&] { return drained > 0; }));
  CHECK(drained == 1);
  CHECK_FALSE(one.session->bulk_full());
}

TEST_CASE("a peer that never reads loses the session at the limit") {
  One one;
  one.session->start(one.log.handlers());
  const std::string megabyte(1 << 20, 'c');
  for (std::size_t i = 0; i < wire::control_queue_max / megabyte.size(); ++i)
    one.session->send(WorkerId(1), megabyte);
  CHECK(one.log.ends.empty());  // never reported inside send
  REQUIRE(run_until(one.io, [&] { return !one.log.ends.empty(); }));
  REQUIRE(one.log.ends.size() == 1);
  CHECK(one.log.ends[0].starts_with("the other side does not read: "));
}

TEST_CASE("a message that is too long for a frame ends the session, not the program") {
  for (const bool bulk : {false, true}) {
    One one;
    one.session->start(one.log.handlers());
    const std::string too_long(wire::frame_bytes_max + 1, 'c');
    if (bulk)
      one.session->send_bulk(WorkerId(1), too_long);
    else
      one.session->send(WorkerId(1), too_long);
    REQUIRE(run_until(one.io, [&] { return !one.log.ends.empty(); }));
    CHECK(one.log.ends[0] == "a message of 16777217 bytes is longer than 16777216");
  }
}

TEST_CASE("a sender that knows its reader's limit ends the session, and says why") {
  One one;
  one.session->start(one.log.handlers());
  one.session->limit_sends(100);
  one.session->send(WorkerId(1), std::string(100, 'c'));
  one.io.poll();
  CHECK(one.log.ends.empty());
  one.session->send(WorkerId(1), std::string(101, 'c'));
  REQUIRE(run_until(one.io, [&] { return !one.log.ends.empty(); }));
  CHECK(one.log.ends[0] == "a message of 101 bytes is longer than 100");
}

TEST_CASE("a session reports once that all it was sent is written, or that it has closed") {
  One one;
  one.session->start(one.log.handlers());
  int written = 0;
  one.session->send(WorkerId(), std::string(wire::frame_bytes_max, 'x'));
  one.session->when_written([&] { ++written; });
  for (int turn = 0; turn < 10; ++turn) one.io.poll();
  CHECK(written == 0);  // the other side does not read
  REQUIRE(run_until(one.io, [&] {
    raw_read(one.raw.get());
    return written > 0;
  }));
  one.session->send(WorkerId(), std::string(wire::frame_bytes_max, 'x'));
  one.session->when_written([&] { ++written; });
  one.session->abort();
  REQUIRE(run_until(one.io, [&] { return !one.log.ends.empty(); }));
  CHECK(written == 2);
}

TEST_CASE("close delivers queued control and bulk frames, then ends both sides") {
  Two two;
  two.start();
  const std::string chunk(256 << 10, 'b');
  for (int i = 0; i < 8; ++i) two.a->send_bulk(WorkerId(1), chunk);
  two.a->send(WorkerId(), "control");
  two.a->close();
  two.a->send(WorkerId(), "too late");
  two.b->send(WorkerId(), "crossing");  // arrives while the session closes; must not cause a reset
  REQUIRE(run_until(two.io, [&] { return !two.log_a.ends.empty() && !two.log_b.ends.empty(); }));
  CHECK(two.log_b.frames.size() == 9);
  CHECK(two.log_b.frames[0].second == "control");
  CHECK(two.log_a.ends == std::vector<std::string>{"closed here"});
  CHECK(two.log_b.ends == std::vector<std::string>{"the other side closed the connection"});
}

TEST_CASE("a session that is closed and then destroyed still delivers") {
  Two two;
  two.b->start(two.log_b.handlers());
  two.a->send(WorkerId(), std::string(3 << 20, 'l'));
  two.a->close();
  two.a.reset();
  REQUIRE(run_until(two.io, [&] { return !two.log_b.ends.empty(); }));
  REQUIRE(two.log_b.frames.size() == 1);
  CHECK(two.log_b.frames[0].second.size() == 3 << 20);
}

TEST_CASE("close gives up on a peer that does not read") {
  One one;
  one.session->start(one.log.handlers());
  one.session->send(WorkerId(), std::string(8 << 20, 'l'));
  one.session->close(20ms);
  REQUIRE(run_until(one.io, [&] { return !one.log.ends.empty(); }));
  CHECK(one.log.ends ==
        std::vector<std::string>{"closed here; the other side did not take all in time"});
}

TEST_CASE("abort ends the session at once, and on_close is called once") {
  Two two;
  two.start();
  two.a->abort();
  two.a->abort();
  two.a->close();
  CHECK(two.log_a.ends.empty());  // never reported inside the call
  REQUIRE(run_until(two.io, [&] { return !two.log_a.ends.empty() && !two.log_b.ends.empty(); }));
  two.io.restart();
  two.io.run();                        // nothing else happens, and nothing keeps the loop busy
  two.a->start(two.log_a.handlers());  // on_close must not be called again
  two.io.restart();
  two.io.run();
  CHECK(two.log_a.ends == std::vector<std::string>{"aborted here"});
  CHECK(two.log_b.ends.size() == 1);
}

TEST_CASE("garbage and frames over the limit end the session") {
  for (const std::string& bytes : {std::string("GET / HTTP/1.1\r\n\r\n"), frame_of(1, "12345")}) {
    One one;
    one.session->start(one.log.handlers(), 4);
    REQUIRE(raw_write(one.io, one.raw.get(), bytes));
    REQUIRE(run_until(one.io, [&] { return !one.log.ends.empty(); }));
    CHECK(one.log.frames.empty());
    CHECK(one.log.ends[0].find("at most 4 are allowed") != std::string::npos);
    CHECK(raw_closed(one.raw.get()));
  }
}

TEST_CASE("frames that a peer sent before it died are delivered, even while we were writing") {
  One one(16 << 10);
  one.session->send(WorkerId(1), std::string(1 << 20, 'w'));
  one.io.poll();
  REQUIRE(raw_write(one.io, one.raw.get(), frame_of(5, "last words")));
  one.raw = Fd();
  one.session->start(one.log.handlers());
  REQUIRE(run_until(one.io, [&] { return !one.log.ends.empty(); }));
  REQUIRE(one.log.frames.size() == 1);
  CHECK(one.log.frames[0].second == "last words");
  CHECK(one.log.ends.size() == 1);
}

TEST_CASE("a session may be destroyed by its own handlers") {
  SUBCASE("in on_frame, with more frames pending") {
    Two two;
    int frames = 0;
    two.b->start({.on_frame =
                      [&](WorkerId, std::string_view) {
                        ++frames;
                        two.b.reset();
                      },
                  .on_close = [](const std::string&) { FAIL("called after destruction"); }});
    two.a->start(two.log_a.handlers());
    two.a->send(WorkerId(), "x");
    two.a->send(WorkerId(), "y");
    REQUIRE(run_until(two.io, [&] { return !two.log_a.ends.empty(); }));
    CHECK(frames == 1);
  }
  SUBCASE("in on_close") {
    Two two;
    bool ended = false;
    two.b->start({.on_frame = [](WorkerId, std::string_view) {},
                  .on_close =
                      [&](const std::string&) {
                        two.b.reset();
                        ended = true;
                      }});
    two.a.reset();
    CHECK(run_until(two.io, [&] { return ended; }));
  }
}

TEST_CASE("frames that arrive while a session is on hold wait for its next handlers") {
  Two two;
  Log first, second;
  Handlers once = first.handlers();
  once.on_frame = [&](WorkerId worker, std::string_view payload) {
    first.frames.emplace_back(worker.value, payload);
    two.b->hold();
  };
  two.b->start(std::move(once));
  for (const char* text : {"1", "2", "3"}) two.a->send(WorkerId(), text);
  two.a->close();
  REQUIRE(run_until(two.io, [&] { return first.frames.size() == 1; }));
  two.io.poll();
  two.b->start(second.handlers());
  REQUIRE(run_until(two.io, [&] { return !second.ends.empty(); }));
  CHECK(first.frames.size() == 1);
  CHECK(first.ends.empty());
  CHECK(second.frames.size() == 2);
}

TEST_CASE("an adopted descriptor is not inherited by a child") {
  auto [first, second] = socket_pair();
  ::fcntl(first.get(), F_SETFD, 0);
  boost::asio::io_context io;
  const int fd = first.release();
  const auto session = adopt(io, fd);
  CHECK((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
}
