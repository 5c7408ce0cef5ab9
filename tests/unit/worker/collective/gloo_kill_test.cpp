// A process that is killed breaks the group of the others, but does not end them.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/worker/ranks.hpp"

using namespace elasticrun::worker::collective;
using namespace elasticrun::worker::testing;

TEST_CASE("a killed process breaks the group, and SIGPIPE does not end the others") {
  constexpr int size = 3;
  for (int round = 0; round < 5; ++round) {
    int pipes[2], back[2];
    REQUIRE(::pipe(pipes) == 0);
    REQUIRE(::pipe(back) == 0);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    const auto line = [](int fd) {
      std::string text;
      for (char c = 0; ::read(fd, &c, 1) == 1 && c != '\n';) text += c;
      return text;
    };
    const auto tell = [](int fd, const std::string& text) {
      return ::write(fd, (text + "\n").data(), text.size() + 1);
    };
    const auto loop = [](Group& group) {
      std::vector<float> data(3'000'000, 1);
      for (;;) group.all_reduce(data.data(), DataType::float32, data.size());
    };
    if (child == 0) {
      const auto plane = make_gloo_plane({});
      const auto group = plane->create({.rank = 2, .size = size});
      tell(back[1], group->publish());
      const std::string first = line(pipes[0]), second = line(pipes[0]);
      group->connect({first, second, group->size() == 3 ? line(pipes[0]) : ""});
      std::jthread([] {
        let_pass(20'000);
        ::kill(::getpid(), SIGKILL);
      }).detach();
      loop(*group);
    }
    ::close(back[1]);
    const auto plane0 = make_gloo_plane({}), plane1 = make_gloo_plane({});
    const auto group0 = plane0->create({.rank = 0, .size = size}),
               group1 = plane1->create({.rank = 1, .size = size});
    const std::vector<std::string> all{group0->publish(), group1->publish(), line(back[0])};
    for (const std::string& text : all) tell(pipes[1], text);
    std::atomic<int> broken{0};
    const auto survive = [&](Group& group) {
      try {
        group.connect(all);
        loop(group);
      } catch (const GroupBroken&) {
        return 1;
      }
      return 0;
    };
    {
      std::jthread other([&] { broken += survive(*group1); });
      broken += survive(*group0);
    }
    CHECK(broken == 2);
    int status = 0;
    CHECK(::waitpid(child, &status, 0) == child);
    for (const int fd : {pipes[0], pipes[1], back[0]}) ::close(fd);
  }
}

TEST_CASE("a peer that leaves in the middle of a large message ends the wait for it") {
  int cut = 0;
  // the kernel may transfer everything before the peer leaves
  for (int round = 0; round < 10; ++round) {
    std::atomic<bool> begun{false};
    run_planes(2, [&](int rank, DataPlane& plane, Exchange& exchange) {
      const auto group = form(plane, exchange, rank, 2);
      std::vector<char> data(64u << 20, rank == 0 ? 'x' : '-');
      exchange(rank, "");
      if (rank == 0) {
        auto sending = group->post_send(1, data.data(), data.size(), 1);
        while (!begun) std::this_thread::yield();
        sending.reset();
        group->close();
      } else {
        const auto coming = group->post_recv(0, data.data(), data.size(), 1);
        while (std::atomic_ref(data[0]) != 'x') std::this_thread::yield();
        begun = true;
        try {
          coming->wait();
        } catch (const GroupBroken&) {
          ++cut;
        }
      }
    });
  }
  CHECK(cut > 0);
}
