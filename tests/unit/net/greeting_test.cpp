// Dialling and listening on a Unix socket: peers that are accepted, refused, or silent.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "loop.hpp"
#include "net/dial.hpp"
#include "net/listener.hpp"
#include "wire/codec.hpp"
#include "wire/frame.hpp"

using namespace elasticrun;
using namespace elasticrun::net;
using namespace std::chrono_literals;

namespace {

// A private directory with one listener in it.
struct House {
  boost::asio::io_context io;
  std::string directory, path;
  Guestbook book;
  std::unique_ptr<Listener> listener;

  explicit House(ListenerOptions options = options_of("worker", "job-1")) {
    char pattern[] = "/tmp/elasticrun-test-XXXXXX";
    directory = ::mkdtemp(pattern);
    path = directory + "/s";
    auto result = listen_unix(io, path, std::move(options), book.handlers());
    REQUIRE(result.has_value());
    listener = std::move(*result);
  }
  ~House() {
    listener.reset();
    std::filesystem::remove_all(directory);
  }
  Operation dial(const wire::Hello& hello, Outcome& outcome) {
    return dial_unix(io, path, hello, 5s, outcome.handler());
  }
  // Connects without greeting.
  Fd knock() {
    const Result<int> fd = connect_unix_socket(path);
    REQUIRE(fd.has_value());
    return Fd(*fd);
  }
};

// The number of sockets that a child of this process would inherit.
int inheritable_sockets() {
  int count = 0;
  for (int fd = 0; fd < 256; ++fd) {
    struct stat status {};
    if (::fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode))
      count += (::fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0;
  }
  return count;
}

std::string greeting_frame(const wire::Hello& hello, WorkerId envelope = {}) {
  std::string bytes;
  wire::append_frame(bytes, envelope, wire::encode(hello));
  return bytes;
}

}  // namespace

TEST_CASE("a valid greeting gets a session, and each side knows the other") {
  House house;
  Outcome outcome;
  wire::Hello hello = hello_of("worker", "job-1");
  hello.worker = WorkerId(12);
  const Operation dialling = house.dial(hello, outcome);
  CHECK(outcome.calls == 0);
  REQUIRE(run_until(house.io, [&] { return outcome.calls > 0; }));
  REQUIRE_MESSAGE(outcome.session, outcome.error);
  CHECK(outcome.welcome.term == Term(4));
  REQUIRE(house.book.sessions.size() == 1);
  CHECK(house.book.hellos[0].worker == WorkerId(12));
  CHECK(house.book.peers[0].pid == ::getpid());
  CHECK(house.book.peers[0].name == "pid " + std::to_string(::getpid()));

  Log ours, theirs;
  house.book.sessions[0]->send(WorkerId(), "early");  // waits until the other side starts
  outcome.session->start(ours.handlers());
  house.book.sessions[0]->start(theirs.handlers());
  // the size limit of the greeting no longer applies
  outcome.session->send(WorkerId(), std::string(1 << 20, 'm'));
  REQUIRE(
      run_until(house.io, [&] { return ours.frames.size() == 1 && theirs.frames.size() == 1; }));
  CHECK(ours.frames[0].second == "early");
  CHECK(theirs.frames[0].second.size() == 1 << 20);
}

TEST_CASE("a welcome may be longer than a greeting: it carries a command of the user") {
  ListenerOptions options = options_of("agent", "job-1");
  options.welcome.notice = std::string(100'000, 'n');
  House house(std::move(options));
  Outcome outcome;
  const Operation dialling = house.dial(hello_of("agent", "job-1"), outcome);
  REQUIRE(run_until(house.io, [&] { return outcome.calls > 0; }));
  REQUIRE_MESSAGE(outcome.session, outcome.error);
  CHECK(outcome.welcome.notice.size() == 100'000);
}

TEST_CASE("a frame that arrives together with the greeting waits until the session starts") {
  House house;
  const Fd hasty = house.knock();
  std::string bytes = greeting_frame(hello_of("worker", "job-1"));
  wire::append_frame(bytes, WorkerId(), "hasty");
  REQUIRE(raw_write(house.io, hasty.get(), bytes));
  REQUIRE(run_until(house.io, [&] { return house.book.sessions.size() == 1; }));
  house.io.poll();
  Log log;
  house.book.sessions[0]->start(log.handlers());
  REQUIRE(run_until(house.io, [&] { return !log.frames.empty(); }));
  CHECK(log.frames[0].second == "hasty");
}

TEST_CASE("a peer that is refused gets the reason") {
  wire::Hello old = hello_of("worker", "job-1");
  old.protocol = 77;
  old.version = "0.0.1";
  const std::tuple<wire::Hello, std::string, std::string> cases[] = {
      {old, "",
       fmt::format("this is protocol {} (version 9.9.9), you speak protocol 77 (version 0.0.1); "
                   "use one version on both sides",
                   wire::protocol)},
      {hello_of("agent", "job-1"), "", "expected the role 'worker', got 'agent'"},
      {hello_of("worker", "job-2"), "", "this is job 'job-1', not 'job-2'"},
      {hello_of("worker", "job-1"), "nobody knows worker 3", "nobody knows worker 3"},
  };
  for (const auto& [hello, answer, why] : cases) {
    House house;
    house.book.answer = answer;
    Outcome outcome;
    const Operation dialling = house.dial(hello, outcome);
    REQUIRE(run_until(house.io, [&] { return outcome.calls > 0; }));
    CHECK(outcome.error == house.path + " refused: " + why);
    CHECK(house.book.refused == std::vector<std::string>{why});
    CHECK(house.book.sessions.empty());
  }
}

TEST_CASE("peers that do not greet are rejected, and a valid peer is still accepted") {
  House house;
  std::string oversize;
  wire::append_frame(oversize, WorkerId(), std::string(wire::greeting_bytes_max + 1, ' '));
  std::string no_hello;
  wire::append_frame(no_hello, WorkerId(), R"({"Heartbeat":{}})");
  const std::pair<std::string, std::string> cases[] = {
      {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "no greeting: a frame of "},
      {oversize, "no greeting: a frame of 4097 bytes"},
      {no_hello, "no greeting: unknown message 'Heartbeat'"},
      {greeting_frame(hello_of("worker", "job-1"), WorkerId(3)),
       "no greeting: a message came first"},
      {"", "no greeting: the other side closed the connection"},
  };
  for (const auto& one : cases) {
    const std::string &bytes = one.first, &why = one.second;  // clang 14 captures no bindings
    CAPTURE(why);
    house.book.refused.clear();
    Fd stranger = house.knock();
    REQUIRE(raw_write(house.io, stranger.get(), bytes));
    if (bytes.empty()) {
      stranger = Fd();
    } else {
      CHECK(run_until(house.io, [&] { return raw_closed(stranger.get()); }));
    }
    REQUIRE(run_until(house.io, [&] { return !house.book.refused.empty(); }));
    CHECK(house.book.refused[0].starts_with(why));
  }
  Outcome outcome;
  const Operation dialling = house.dial(hello_of("worker", "job-1"), outcome);
  REQUIRE(run_until(house.io, [&] { return outcome.calls > 0; }));
  CHECK_MESSAGE(outcome.session, outcome.error);
}

TEST_CASE("half-open connections end at the deadline and block only as many places as they hold") {
  ListenerOptions options = options_of("worker", "job-1");
  options.greeting_time = 50ms;
  options.pending_max = 2;
  House house(std::move(options));
  std::vector<Fd> silent;
  for (int i = 0; i < 5; ++i) silent.push_back(house.knock());
  int turns = 0;
  for (house.io.restart(); turns < 1000 && house.io.poll_one() > 0;) ++turns;
  CHECK(turns < 1000);  // a full listener waits instead of spinning
  Outcome outcome;
  const Operation dialling = house.dial(hello_of("worker", "job-1"), outcome);
  REQUIRE(run_until(house.io, [&] { return outcome.calls > 0; }));
  CHECK_MESSAGE(outcome.session, outcome.error);
  // The valid peer was behind all of them, and only two are let in at a time: four were rejected by
  // now.
  CHECK(house.book.refused.size() >= 4);
  REQUIRE(run_until(house.io, [&] { return house.book.refused.size() == 5; }));
  for (const std::string& why : house.book.refused) CHECK(why == "no greeting within 50 ms");
  for (const Fd& fd : silent) CHECK(raw_closed(fd.get()));
}

TEST_CASE("a full listener has a shorter greeting deadline while others wait") {
  ListenerOptions options = options_of("worker", "job-1");
  options.greeting_time = 1h;
  options.full_time = 20ms;
  options.pending_max = 2;
  House house(std::move(options));
  std::vector<Fd> silent;
  for (int i = 0; i < 6; ++i) silent.push_back(house.knock());
  Outcome outcome;
  const Operation dialling = house.dial(hello_of("worker", "job-1"), outcome);
  REQUIRE(run_until(house.io, [&] { return outcome.calls > 0; }));
  CHECK_MESSAGE(outcome.session, outcome.error);
  // The last silent connection keeps its place, because no other one waits for it.
  CHECK(house.book.refused.size() == 5);
  for (const std::string& why : house.book.refused)
    CHECK(why == "no greeting within 20 ms, and others wait");
}

TEST_CASE("a failed dial reports one clear error") {
  boost::asio::io_context io;
  Outcome outcome;
  SUBCASE("no listener") {
    const Operation dialling = dial_unix(io, "/tmp/elasticrun-no-such-socket",
                                         hello_of("worker", "j"), 5s, outcome.handler());
    CHECK(outcome.calls == 0);
    REQUIRE(run_until(io, [&] { return outcome.calls > 0; }));
    CHECK(outcome.error ==
          "cannot connect to /tmp/elasticrun-no-such-socket: No such file or directory");
  }
  SUBCASE("a path that is too long") {
    const Operation dialling =
        dial_unix(io, std::string(200, 'p'), hello_of("worker", "j"), 5s, outcome.handler());
    REQUIRE(run_until(io, [&] { return outcome.calls > 0; }));
    CHECK(outcome.error.find("must have 1 to 107 bytes; use a shorter directory") !=
          std::string::npos);
  }
  SUBCASE("a listener that never answers") {
    House house;
    house.listener.reset();
    const Result<int> mute = listen_unix_socket(house.path);
    REQUIRE(mute.has_value());
    const Fd owner(*mute);
    const Operation dialling =
        dial_unix(house.io, house.path, hello_of("worker", "job-1"), 30ms, outcome.handler());
    REQUIRE(run_until(house.io, [&] { return outcome.calls > 0; }));
    CHECK(outcome.error == house.path + " did not answer within 30 ms");
  }
  CHECK(outcome.calls == 1);
}

TEST_CASE("destroying a dial operation cancels it") {
  House house;
  Outcome outcome;
  Operation dialling = house.dial(hello_of("worker", "job-1"), outcome);
  dialling.reset();
  house.io.restart();
  house.io.poll();
  CHECK(outcome.calls == 0);
}

TEST_CASE("the socket is private, is not inherited by a child, and disappears with its listener") {
  const int before = inheritable_sockets();
  House house;
  struct stat status {};
  REQUIRE(::stat(house.path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  const auto again =
      listen_unix(house.io, house.path, options_of("worker", "j"), house.book.handlers());
  REQUIRE(again.has_error());
  CHECK(again.error().text == "cannot listen on '" + house.path + "': Address already in use");

  Outcome outcome;
  const Operation dialling = house.dial(hello_of("worker", "job-1"), outcome);
  REQUIRE(run_until(house.io, [&] { return outcome.calls > 0; }));
  CHECK(outcome.session);
  CHECK(inheritable_sockets() == before);
  house.listener.reset();
  CHECK(::stat(house.path.c_str(), &status) != 0);
  CHECK(house.book.sessions.size() == 1);  // an accepted session outlives the listener
}
