// The connections of a world: its members find each other, and no other peer takes a member's
// place.
#include "worker/collective/peer_connector.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <thread>

#include "tests/unit/worker/ranks.hpp"

using namespace elasticrun;
using namespace elasticrun::worker::collective;
using namespace std::chrono_literals;

namespace {

const std::string secret(64, 'a');

GroupSpec spec_of(int rank, int size, std::chrono::milliseconds limit = 10s) {
  return {.rank = rank,
          .size = size,
          .generation = Generation(7),
          .secret = secret,
          .connect_limit = limit};
}

struct Ended {
  std::vector<net::Fd> sockets;
  std::string error;
  std::vector<PeerTrouble> troubles;
};

Ended connect(PeerConnector& connector, const std::vector<std::string>& published) {
  Ended ended;
  try {
    ended.sockets = connector.connect(published);
  } catch (const GroupBroken& broken) {
    ended.error = broken.what();
    ended.troubles = broken.troubles;
  }
  return ended;
}

// A connection to the published address, made without being a member.
net::Fd knock(const std::string& published) {
  const auto port = static_cast<std::uint16_t>(std::stoi(published.substr(10), nullptr, 16));
  net::Fd socket(*net::connect_tcp("127.0.0.1", port));
  pollfd connecting{socket.get(), POLLOUT, 0};
  ::poll(&connecting, 1, 5000);
  return socket;
}
void say(const net::Fd& socket, std::string_view words) {
  CHECK(::send(socket.get(), words.data(), words.size(), MSG_NOSIGNAL) == std::ssize(words));
}
// True when the other side closes within five seconds.
bool hangs_up(const net::Fd& socket) {
  pollfd waiting{socket.get(), POLLIN, 0};
  char byte = 0;
  return ::poll(&waiting, 1, 5000) == 1 && ::recv(socket.get(), &byte, 1, 0) <= 0;
}

}  // namespace

TEST_CASE("each rank gets one connection to each other rank") {
  constexpr int size = 5;
  std::vector<std::unique_ptr<PeerConnector>> connectors;
  std::vector<std::string> published;
  for (int rank = 0; rank < size; ++rank) {
    connectors.push_back(std::make_unique<PeerConnector>(spec_of(rank, size), "127.0.0.1"));
    published.push_back(connectors.back()->published());
  }
  std::vector<Ended> ended(size);
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] { ended[rank] = connect(*connectors[rank], published); });
  }
  for (std::size_t rank = 0; rank < size; ++rank) {
    REQUIRE_MESSAGE(ended[rank].error.empty(), ended[rank].error);
    CHECK(connectors[rank]->missing().empty());
    CHECK(connectors[rank]->rejected() == 0);
    for (std::size_t peer = 0; peer < size; ++peer) {
      const net::Fd& socket = ended[rank].sockets[peer];
      CHECK((socket.get() >= 0) == (peer != rank));
      if (peer == rank) continue;
      // The connection must lead to the right peer.
      CHECK(net::peer_name(socket.get()) ==
            "127.0.0.1:" + std::to_string(net::local_port(ended[peer].sockets[rank].get())));
    }
  }
}

TEST_CASE("ranks that are no neighbours are neither dialled nor accepted") {
  constexpr int size = 4;  // in a circle: 0 and 2 are no neighbours, nor are 1 and 3
  std::vector<std::unique_ptr<PeerConnector>> connectors;
  std::vector<std::string> published;
  for (int rank = 0; rank < size; ++rank) {
    GroupSpec spec = spec_of(rank, size);
    spec.neighbours = {(rank + 1) % size, (rank + 3) % size};
    std::ranges::sort(spec.neighbours);
    connectors.push_back(std::make_unique<PeerConnector>(spec, "127.0.0.1"));
    CHECK(connectors.back()->missing() == spec.neighbours);
    published.push_back(connectors.back()->published());
  }
  // A member of this world, but no neighbour.
  const net::Fd other = knock(published[0]);
  say(other, PeerGreeting(secret, Generation(7)).greeting(Rank(2), Rank(0)));
  std::vector<Ended> ended(size);
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] {
        std::vector<std::string> needed = published;
        needed[(rank + 2) % size].clear();
        ended[rank] = connect(*connectors[rank], needed);
      });
  }
  for (std::size_t rank = 0; rank < size; ++rank) {
    REQUIRE_MESSAGE(ended[rank].error.empty(), ended[rank].error);
    for (std::size_t peer = 0; peer < size; ++peer)
      CHECK((ended[rank].sockets[peer].get() >= 0) == (peer % 2 != rank % 2));
  }
  CHECK(hangs_up(other));
}

TEST_CASE("peers that are no members are rejected and counted, and take no place") {
  const PeerGreeting other_secret(std::string(64, 'b'), Generation(7));
  const PeerGreeting other_world(secret, Generation(6));
  const PeerGreeting own(secret, Generation(7));
  const std::string member = own.greeting(Rank(1), Rank(0));
  const std::string tries[] = {
      "GET / HTTP/1.1\r\nHost: somewhere\r\nUser-Agent: one that says a lot\r\n\r\n",
      std::string(PeerGreeting::greeting_bytes, '\0'),
      other_secret.greeting(Rank(1), Rank(0)),  // another job, or a guess
      other_world.greeting(Rank(1), Rank(0)),   // a member of the previous world
      own.greeting(Rank(1), Rank(2)),           // for another rank
      own.greeting(Rank(0), Rank(0)),           // a rank that does not dial this one
      own.greeting(Rank(7), Rank(0)),           // not a rank of this world
      own.answer(Rank(1), Rank(0)) + std::string(24, '\0'),
      member.substr(0, member.size() - 1) + static_cast<char>(member.back() ^ 1),
  };
  PeerConnector zero(spec_of(0, 2), "127.0.0.1"), one(spec_of(1, 2), "127.0.0.1");
  const std::vector<std::string> published{zero.published(), one.published()};
  Ended ended;
  std::jthread waiting([&] { ended = connect(zero, published); });
  for (const std::string& words : tries) {
    const net::Fd stranger = knock(published[0]);
    say(stranger, words);
    CHECK(hangs_up(stranger));
  }
  { const net::Fd silent = knock(published[0]); }
  CHECK(zero.missing() == std::vector{1});
  const Ended theirs = connect(one, published);
  waiting.join();
  CHECK_MESSAGE(theirs.error.empty(), theirs.error);
  CHECK_MESSAGE(ended.error.empty(), ended.error);
  CHECK(zero.rejected() >= static_cast<int>(std::size(tries)));
}

TEST_CASE("hundreds of silent connections keep no member out") {
  PeerConnector zero(spec_of(0, 2), "127.0.0.1"), one(spec_of(1, 2), "127.0.0.1");
  const std::vector<std::string> published{zero.published(), one.published()};
  std::vector<net::Fd> strangers;
  for (int i = 0; i < 200; ++i) strangers.push_back(knock(published[0]));
  Ended ended;
  std::jthread waiting([&] { ended = connect(zero, published); });
  CHECK(connect(one, published).error.empty());
  waiting.join();
  CHECK(ended.error.empty());
}

TEST_CASE("a peer that answers wrongly is rejected, and its rank is named") {
  const Result<int> listening = net::listen_tcp("127.0.0.1", 0);
  const net::Fd owner(*listening);
  const std::string theirs = fmt::format("127.0.0.1/{:04x}", net::local_port(*listening));
  PeerConnector one(spec_of(1, 2), "127.0.0.1");
  std::string answer(PeerGreeting::answer_bytes, 'x');
  std::string wanted = "answers, but is no member of this world";
  bool hung_up = false;
  SUBCASE("with nonsense") {}
  SUBCASE("with the greeting that it got") {
    answer = PeerGreeting(secret, Generation(7)).greeting(Rank(1), Rank(0)).substr(24);
  }
  SUBCASE("not at all") {
    answer.clear();
    wanted = "hung up when it was greeted";
    hung_up = true;
  }
  std::jthread impostor([&] {
    pollfd waiting{*listening, POLLIN, 0};
    ::poll(&waiting, 1, 5000);
    const net::Fd socket(net::accept_socket(*listening));
    if (!answer.empty()) say(socket, answer);
    pollfd reading{socket.get(), POLLIN, 0};
    ::poll(&reading, 1, 5000);
  });
  const Ended ended = connect(one, {theirs, one.published()});
  REQUIRE(ended.troubles.size() == 1);
  CHECK(ended.troubles[0].rank == 0);
  CHECK(ended.troubles[0].hung_up == hung_up);
  CHECK(ended.troubles[0].reason.find(wanted) != std::string::npos);
}

TEST_CASE("ranks that are missing at the timeout are named, with their addresses") {
  PeerConnector middle(spec_of(1, 3, 100ms), "127.0.0.1");
  const Result<int> mute = net::listen_tcp("127.0.0.1", 0);
  const net::Fd owner(*mute);
  const std::string below = fmt::format("127.0.0.1/{:04x}", net::local_port(*mute));
  const Ended ended = connect(middle, {below, middle.published(), "127.0.0.1/0009"});
  REQUIRE(ended.troubles.size() == 2);
  CHECK(ended.troubles[0].rank == 0);
  CHECK(ended.troubles[0].reason ==
        fmt::format("127.0.0.1:{} did not answer within 100 ms", net::local_port(*mute)));
  CHECK(ended.troubles[1].rank == 2);
  CHECK(ended.troubles[1].reason == "127.0.0.1:9 did not dial within 100 ms");
  CHECK(middle.missing() == std::vector{0, 2});
}

TEST_CASE("a peer that does not listen is reported at once, with the system's error") {
  std::string gone;
  {
    const PeerConnector before(spec_of(0, 2), "127.0.0.1");
    gone = before.published();
  }
  PeerConnector one(spec_of(1, 2), "127.0.0.1");
  const Ended ended = connect(one, {gone, one.published()});
  REQUIRE(ended.troubles.size() == 1);
  CHECK(ended.troubles[0].hung_up);  // it has listened there, so it has closed the port
  CHECK(ended.troubles[0].reason.ends_with("Connection refused"));
}

TEST_CASE("a rank that can reach no other names all of them, or itself") {
  std::vector<std::string> gone;
  for (const int rank : {0, 1})
    gone.push_back(PeerConnector(spec_of(rank, 3), "127.0.0.1").published());
  PeerConnector one(spec_of(2, 3), "127.0.0.1");
  const Ended refused = connect(one, {gone[0], gone[1], one.published()});
  REQUIRE(refused.troubles.size() == 2);
  CHECK(refused.troubles[0].rank == 0);
  CHECK(refused.troubles[1].rank == 1);

  // As without any network: connect fails at once, because there is no route.
  PeerConnector alone(spec_of(2, 3), "127.0.0.1");
  const Ended unreachable = connect(alone, {"224.0.0.1/0009", "224.0.0.1/0009", alone.published()});
  REQUIRE(unreachable.troubles.size() == 2);
  for (const PeerTrouble& trouble : unreachable.troubles) CHECK(trouble.rank == 2);
  CHECK(unreachable.error.starts_with("here: cannot connect to 224.0.0.1:9: "));
}

TEST_CASE("an address of another machine is the rank's own problem") {
  try {
    const PeerConnector nowhere(spec_of(1, 2), "203.0.113.7");
    FAIL("it listens");
  } catch (const GroupBroken& broken) {
    REQUIRE(broken.troubles.size() == 1);
    CHECK(broken.troubles[0].rank == 1);
  }
}

TEST_CASE("a greeting is valid only for its world, its sender and its receiver") {
  const PeerGreeting world(secret, Generation(7));
  const std::string greeting = world.greeting(Rank(3), Rank(1));
  CHECK(greeting.size() == PeerGreeting::greeting_bytes);
  CHECK(world.sender(greeting, Rank(1)) == Rank(3));
  CHECK_FALSE(world.sender(greeting, Rank(2)));
  CHECK_FALSE(world.sender(greeting.substr(1), Rank(1)));
  CHECK_FALSE(world.sender(greeting + '\0', Rank(1)));
  CHECK_FALSE(PeerGreeting(secret, Generation(8)).sender(greeting, Rank(1)));
  CHECK_FALSE(PeerGreeting(std::string(64, 'b'), Generation(7)).sender(greeting, Rank(1)));
  for (std::size_t i = 0; i < greeting.size(); ++i) {
    std::string changed = greeting;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    CHECK_FALSE(world.sender(changed, Rank(1)));
  }
  CHECK(world.answer(Rank(3), Rank(1)) != world.answer(Rank(1), Rank(3)));
  // An invalid secret counts as a well-known one, since a world of one needs none.
  CHECK(PeerGreeting("", Generation(1))
            .sender(PeerGreeting("12", Generation(1)).greeting(Rank(1), Rank(0)), Rank(0)) ==
        Rank(1));
}
