// Groups over Gloo: correct results, bounded waits, and aborts that end whatever blocks.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "tests/unit/worker/collective/check_all_reduce.hpp"
#include "tests/unit/worker/ranks.hpp"

using namespace elasticrun::worker::collective;
using namespace elasticrun::worker::testing;
using Clock = std::chrono::steady_clock;

namespace {

// The sanitizers do; the address sanitizer checks for leaks itself.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool keeps_freed_memory = true;
#elif defined(__has_feature)
constexpr bool keeps_freed_memory =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool keeps_freed_memory = false;
#endif

// Means milliseconds, on a machine that may be busy with other tests. What must not happen is that
// a call waits for its timeout.
constexpr auto soon = std::chrono::seconds(5);

std::size_t entries(const char* directory) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(directory), {}));
}

long resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::stol(line.substr(6));
  return 0;
}

struct Cut {
  std::string outcome;  // of the call
  Clock::time_point aborted;
};

// Runs `call` on another thread and aborts the group after `turns` yields. How long
// these take depends on the load of the machine, so times are measured from the abort.
Cut cut_short(Group& group, int turns, const std::function<void()>& call) {
  std::string outcome = "returned";
  Clock::time_point aborted;
  {
    std::jthread blocked([&] {
      try {
        call();
      } catch (const GroupBroken&) {
        outcome = "broken";
      } catch (const std::exception& error) {
        outcome = error.what();
      }
    });
    let_pass(turns);
    aborted = Clock::now();
    group.abort();
  }
  return {outcome, aborted};
}

}  // namespace

TEST_CASE("collectives give every rank the same correct result") {
  for (const int size : {1, 2, 3, 4, 5, 8}) {
    CAPTURE(size);
    run_ranks(size, [&](Group& group) {
      CHECK(group.size() == size);
      for (const std::size_t count : {1u, 3u, 256u, 5000u, 100'003u}) {
        check_all_reduce<float>(group, count);
        check_all_reduce<double>(group, count);
      }
      for (int root = 0; root < size; ++root) {
        std::string text(1000, group.rank() == root ? 'x' : '-');
        group.broadcast(text.data(), text.size(), root);
        CHECK(text == std::string(1000, 'x'));
      }
      group.barrier();
    });
  }
}

TEST_CASE("inexact sums have the same bits on every rank") {
  for (const std::size_t count : {7u, 1000u, 50'000u}) {
    std::mutex mutex;
    std::vector<std::vector<float>> results;
    run_ranks(5, [&](Group& group) {
      std::vector<float> data(count);
      for (std::size_t i = 0; i < count; ++i)
        data[i] = 1.0f / static_cast<float>(3 + group.rank() * 7 + static_cast<int>(i % 1001));
      group.all_reduce(data.data(), DataType::float32, count);
      const std::lock_guard lock(mutex);
      results.push_back(std::move(data));
    });
    for (const auto& result : results) CHECK(result == results.front());
  }
}

TEST_CASE("messages between two ranks arrive in order, and several may be under way") {
  run_ranks(3, [](Group& group) {
    const int next = (group.rank() + 1) % 3, before = (group.rank() + 2) % 3;
    std::vector<std::vector<int>> out(6), in(6, std::vector<int>(10'000));
    std::vector<std::unique_ptr<Pending>> pending;
    for (int i = 0; i < 6; ++i) {
      out[static_cast<std::size_t>(i)].assign(10'000, 100 * group.rank() + i);
      pending.push_back(group.post_recv(before, in[static_cast<std::size_t>(i)].data(), 40'000,
                                        static_cast<std::uint32_t>(i / 3)));
      pending.push_back(group.post_send(next, out[static_cast<std::size_t>(i)].data(), 40'000,
                                        static_cast<std::uint32_t>(i / 3)));
    }
    for (const auto& message : pending) message->wait();
    for (int i = 0; i < 6; ++i)
      CHECK(in[static_cast<std::size_t>(i)] == std::vector<int>(10'000, 100 * before + i));
    char nothing = 0;
    auto empty = group.post_recv(before, &nothing, 0, 9);
    group.send(next, &nothing, 0, 9);
    empty->wait();
  });
}

TEST_CASE("a world of one needs no sockets and can be aborted") {
  const std::size_t before = entries("/proc/self/fd");
  const auto plane = make_gloo_plane({.address = "not used"});
  const auto group = plane->create({.rank = 0, .size = 1});
  group->connect({group->publish()});
  float x = 3;
  group->all_reduce(&x, DataType::float32, 1);
  group->broadcast(&x, sizeof x, 0);
  group->barrier();
  CHECK(x == 3);
  CHECK(entries("/proc/self/fd") == before);
  group->abort();
  group->abort();
  CHECK_THROWS_AS(group->all_reduce(&x, DataType::float32, 1), GroupBroken);
  group->close();
}

TEST_CASE("published addresses are checked, and so is the rank's own address") {
  const auto plane = make_gloo_plane({});
  for (const char* published :
       {"", "-", "127.0.0.1", "127.0.0.1/", "127.0.0.1/12", "127.0.0.1/0000", "127.0.0.1/zzzz",
        "127.0.0.1/12345", "nowhere/1234", "/1234"}) {
    CAPTURE(published);
    const auto group = plane->create({.rank = 1, .size = 2});
    const std::string own = group->publish();
    CHECK_THROWS_WITH_AS(group->connect({published, own}), doctest::Contains("rank 0: "),
                         GroupBroken);
  }
  CHECK_THROWS_WITH_AS(make_gloo_plane({.address = "no such name"})->create({.rank = 0, .size = 2}),
                       "not an IP address for the data plane: 'no such name'", GroupBroken);
  CHECK_THROWS_WITH_AS(
      make_gloo_plane({.address = "203.0.113.7"})->create({.rank = 0, .size = 2}),
      "cannot listen on 203.0.113.7 for the data plane: Cannot assign requested address",
      GroupBroken);
}

TEST_CASE("groups work over IPv6") {
  const auto plane = make_gloo_plane({.address = "::1"});
  std::unique_ptr<Group> groups[2] = {plane->create({.rank = 0, .size = 2}),
                                      plane->create({.rank = 1, .size = 2})};
  const std::vector<std::string> published{groups[0]->publish(), groups[1]->publish()};
  CHECK(published[0].starts_with("::1/"));
  int sums[2] = {};
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < 2; ++rank)
      threads.emplace_back([&, rank] {
        groups[rank]->connect(published);
        float x = 1 + float(rank);
        groups[rank]->all_reduce(&x, DataType::float32, 1);
        sums[rank] = static_cast<int>(x);
      });
  }
  CHECK(sums[0] == 3);
  CHECK(sums[1] == 3);
}

TEST_CASE("a rank that never connects ends the wait at the limit") {
  const auto plane = make_gloo_plane({});
  const auto absent = plane->create({.rank = 1, .size = 2});
  const auto group =
      plane->create({.rank = 0, .size = 2, .connect_limit = std::chrono::milliseconds(250)});
  const auto start = Clock::now();
  const std::string own = group->publish();
  std::string theirs = absent->publish();
  absent->close();  // its port does not answer any more
  CHECK_THROWS_AS(group->connect({own, theirs}), GroupBroken);
  CHECK(Clock::now() - start < soon);
}

TEST_CASE("a group can be aborted before publish, and between publish and connect") {
  const auto plane = make_gloo_plane({});
  const auto early = plane->create({.rank = 0, .size = 2});
  early->abort();
  CHECK_THROWS_AS(early->publish(), GroupBroken);
  const auto later = plane->create({.rank = 0, .size = 2}),
             other = plane->create({.rank = 1, .size = 2});
  const std::vector<std::string> published{later->publish(), other->publish()};
  later->abort();
  CHECK_THROWS_AS(later->connect(published), GroupBroken);
  other->abort();
  CHECK_THROWS_AS(other->connect(published), GroupBroken);
}

TEST_CASE("an abort at any moment ends a connect to ranks that never connect") {
  const auto plane = make_gloo_plane({});
  for (int turns = 0; turns < 4000; turns += 100) {
    CAPTURE(turns);
    const auto group = plane->create({.rank = 1, .size = 3});
    const auto silent0 = plane->create({.rank = 0, .size = 3}),
               silent2 = plane->create({.rank = 2, .size = 3});
    const std::vector<std::string> published{silent0->publish(), group->publish(),
                                             silent2->publish()};
    const Cut cut = cut_short(*group, turns, [&] { group->connect(published); });
    CHECK(cut.outcome == "broken");
    CHECK(Clock::now() - cut.aborted < soon);
    float x = 0;
    CHECK_THROWS_AS(group->all_reduce(&x, DataType::float32, 1), GroupBroken);
  }
}

TEST_CASE("an abort at any moment ends collectives and messages") {
  struct Case {
    const char* name;
    std::function<void(Group&)> call;
  };
  static std::vector<float> big(4'000'000);
  const Case cases[] = {
      {"all-reduce", [](Group& g) { g.all_reduce(big.data(), DataType::float32, big.size()); }},
      {"small all-reduce", [](Group& g) { g.all_reduce(big.data(), DataType::float32, 8); }},
      {"broadcast", [](Group& g) { g.broadcast(big.data(), 1000, 2); }},
      {"barrier", [](Group& g) { g.barrier(); }},
      {"recv", [](Group& g) { g.recv(2, big.data(), 1000, 1); }},
      {"send", [](Group& g) { g.send(2, big.data(), big.size(), 1); }},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    for (const int turns : {0, 50, 500, 5000}) {
      run_planes(3, [&](int rank, DataPlane& plane, Exchange& exchange) {
        const auto group = form(plane, exchange, rank, 3);
        exchange(rank, "");  // an abort before all have formed the group would make forming fail
        if (rank == 0) {
          const Cut cut = cut_short(*group, turns, [&] { c.call(*group); });
          CHECK(cut.outcome == "broken");
          CHECK(Clock::now() - cut.aborted < soon);
        }
        exchange(rank, "");  // ranks 1 and 2 never take part
      });
    }
  }
}

TEST_CASE("one rank's abort reaches ranks in the middle of large messages") {
  for (const int turns : {0, 200, 2000, 20'000}) {
    CAPTURE(turns);
    Clock::time_point aborted;
    run_planes(4, [&](int rank, DataPlane& plane, Exchange& exchange) {
      const auto group = form(plane, exchange, rank, 4);
      std::vector<float> data(2'000'000, 1);
      exchange(rank, "");
      const auto forever = [&] {
        for (;;) group->all_reduce(data.data(), DataType::float32, data.size());
      };
      if (rank == 3) {
        const Cut cut = cut_short(*group, turns, forever);
        CHECK(cut.outcome == "broken");
        aborted = cut.aborted;
      } else {
        CHECK_THROWS_AS(forever(), GroupBroken);
      }
      const auto ended = Clock::now();
      exchange(rank, "");
      CHECK(ended - aborted < soon);
    });
  }
}

TEST_CASE("a dropped receive leaves the memory alone") {
  run_planes(2, [](int rank, DataPlane& plane, Exchange& exchange) {
    const auto group = form(plane, exchange, rank, 2);
    std::vector<char> data(1000, rank == 0 ? 'x' : '-');
    if (rank == 1) group->post_recv(0, data.data(), data.size(), 1).reset();
    exchange(rank, "");
    std::unique_ptr<Pending> late;
    if (rank == 0) late = group->post_send(1, data.data(), data.size(), 1);
    exchange(rank, "");
    group->abort();
    if (rank == 1) CHECK(data == std::vector<char>(1000, '-'));
  });
}

TEST_CASE("an abort touches no socket but its own") {
  int local[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, local) == 0);
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0),
            client = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  REQUIRE(::bind(listener, reinterpret_cast<sockaddr*>(&address), length) == 0);
  REQUIRE(::listen(listener, 4) == 0);
  REQUIRE(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0);
  REQUIRE(::connect(client, reinterpret_cast<sockaddr*>(&address), length) == 0);
  const int server = ::accept(listener, nullptr, nullptr);
  run_planes(3, [](int rank, DataPlane& plane, Exchange& exchange) {
    const auto group = form(plane, exchange, rank, 3);
    exchange(rank, "");
    group->abort();
    exchange(rank, "");
  });
  char byte = 'a';
  CHECK(::write(client, &byte, 1) == 1);
  CHECK(::read(server, &byte, 1) == 1);
  CHECK(::write(local[0], &byte, 1) == 1);
  CHECK(::read(local[1], &byte, 1) == 1);
  const int second = ::socket(AF_INET, SOCK_STREAM, 0);
  CHECK(::connect(second, reinterpret_cast<sockaddr*>(&address), length) == 0);
  for (const int fd : {local[0], local[1], listener, client, server, second}) ::close(fd);
}

TEST_CASE("a hundred re-forms leave no descriptor, thread or memory behind") {
  constexpr int size = 4, warm = 10, rounds = 100;
  std::size_t fds = 0, threads = 0;
  long memory = 0;
  run_planes(size, [&](int rank, DataPlane& plane, Exchange& exchange) {
    for (int round = 0; round < warm + rounds; ++round) {
      {
        const auto group = form(plane, exchange, rank, size);
        std::vector<float> data(50'000, 1);
        group->all_reduce(data.data(), DataType::float32, data.size());
        if (data[7] != size) throw std::runtime_error("wrong sum");
        exchange(rank, "");
        if (round % 3 == 0) group->abort();
        exchange(rank, "");
      }
      exchange(rank, "");
      if (rank == 0 && round == warm) {
        fds = entries("/proc/self/fd");
        threads = entries("/proc/self/task");
        memory = resident_kib();
      }
      exchange(rank, "");
    }
    if (rank == 0) {
      CHECK(entries("/proc/self/fd") == fds);
      CHECK(entries("/proc/self/task") == threads);
      MESSAGE("resident KiB before and after: " << memory << " " << resident_kib());
      if (!keeps_freed_memory) CHECK(resident_kib() - memory < 16'384);
    }
    exchange(rank, "");
  });
}
