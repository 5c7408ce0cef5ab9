// Groups over NCCL: correct results in both kinds of memory, and each way to form the next world.
#include "worker/gpu/nccl_group.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>

#include "tests/unit/worker/gpu/gpu_ranks.hpp"

using namespace elasticrun;
using namespace elasticrun::worker::collective;
using namespace elasticrun::worker::gpu;
using namespace elasticrun::worker::testing;

namespace {

template <class T>
void check_sum(Group& group, T* data, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    data[i] = static_cast<T>((group.rank() + 1) * static_cast<int>(i % 97 + 1));
  group.all_reduce(data, sizeof(T) == 4 ? DataType::float32 : DataType::float64, count);
  const int ranks = group.size() * (group.size() + 1) / 2;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i)
    wrong += data[i] != static_cast<T>(ranks * static_cast<int>(i % 97 + 1));
  CHECK(wrong == 0);
}

int made_by(const char* call) { return fake_gpu::count_of(call); }

}  // namespace

TEST_CASE("collectives of GPUs give every rank the correct result in both kinds of memory") {
  const CleanGpu clean;
  for (const int size : {1, 2, 3, 5}) {
    CAPTURE(size);
    const auto gpu = open_fake_gpu();
    run_ranks(
        size,
        [&](Group& group) {
          for (const std::size_t count : {1u, 3u, 5000u, 100'003u}) {
            std::vector<float> host(count);
            check_sum(group, host.data(), count);
            GpuBuffer device(*gpu);
            check_sum(group, reinterpret_cast<double*>(device.reserve(count * sizeof(double))),
                      count);
          }
          for (int root = 0; root < size; ++root) {
            std::string text(1000, group.rank() == root ? 'x' : '-');
            group.broadcast(text.data(), text.size(), root);
            CHECK(text == std::string(1000, 'x'));
          }
          group.barrier();
        },
        nccl_planes());
  }
}

TEST_CASE("host memory larger than the buffer on the GPU goes through it in pieces") {
  const CleanGpu clean;
  run_ranks(
      2,
      [](Group& group) {
        std::vector<float> host((33u << 20) / sizeof(float) + 5);
        check_sum(group, host.data(), host.size());
      },
      nccl_planes());
}

TEST_CASE("messages that are posted together are sent together") {
  const CleanGpu clean;
  const auto gpu = open_fake_gpu();
  run_ranks(
      3,
      [&](Group& group) {
        // Every rank sends to every other, large and small messages, from both kinds of memory.
        GpuBuffer device(*gpu);
        std::byte* const sent = device.reserve(200'000);
        std::memset(sent, group.rank() + 1, 200'000);
        std::vector<std::vector<char>> received(3, std::vector<char>(200'000)), small(3);
        std::vector<std::unique_ptr<Pending>> pending;
        for (int peer = 0; peer < 3; ++peer) {
          if (peer == group.rank()) continue;
          const auto at = static_cast<std::size_t>(peer);
          small[at].resize(5);
          pending.push_back(group.post_send(peer, sent, 200'000, 1));
          pending.push_back(group.post_send(peer, "hello", 5, 1));
          pending.push_back(group.post_recv(peer, received[at].data(), 200'000, 1));
          pending.push_back(group.post_recv(peer, small[at].data(), 5, 1));
        }
        for (const auto& one : pending) one->wait();
        for (int peer = 0; peer < 3; ++peer) {
          if (peer == group.rank()) continue;
          const auto at = static_cast<std::size_t>(peer);
          CHECK(std::ranges::all_of(received[at], [&](char c) { return c == peer + 1; }));
          CHECK(std::string(small[at].begin(), small[at].end()) == "hello");
        }
      },
      nccl_planes());
}

TEST_CASE("a message is not sent unless it is waited for") {
  const CleanGpu clean;
  run_ranks(
      2, [](Group& group) { group.post_send(1 - group.rank(), "x", 1, 1).reset(); }, nccl_planes());
  CHECK(made_by("ncclGroupEnd") == 0);
}

// ---------------------------------------------------------------- from one world to the next

// How a world forms from the ranks of a world of four.
struct Change {
  const char* what;
  std::vector<int> next;  // ranks of the old world; -1: a newcomer
  bool forced;
  bool in_collective;  // the survivors are in a collective when the abort comes; rank 3 is not
  int version;
  // Calls of all ranks, not counting those that formed the first world.
  int inits, shrinks;
};

class ChangeTest {
 public:
  explicit ChangeTest(const Change& change) : change_(change), exchange_(5) {}

  void run() {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < 5; ++rank)
      threads.emplace_back([this, rank] {
        try {
          one(rank);
        } catch (const std::exception& error) {
          FAIL_CHECK(rank, ": ", error.what());
          exchange_.fail();
        }
      });
  }

 private:
  // Ranks 0 to 3 are the first world; 4 is a newcomer that only joins the second.
  void one(int rank) {
    const auto plane = nccl_planes()();
    std::unique_ptr<Group> old;
    auto addresses = exchange_(
        rank, rank == 4 ? "" : (old = plane->create({.rank = rank, .size = 4}))->publish());
    if (old) {
      addresses.pop_back();
      old->connect(addresses);
      std::vector<float> data(10);
      check_sum(*old, data.data(), data.size());
    }
    exchange_(rank, "");
    if (rank == 0) fake_gpu::reset();
    exchange_(rank, "");
    if (old && change_.forced) disturb(*old, rank);
    if (old && change_.forced) old->close();
    exchange_(rank, "");
    const auto place = std::ranges::find(change_.next, rank == 4 ? -1 : rank);
    std::unique_ptr<Group> next;
    if (place != change_.next.end())
      next = plane->create({.rank = static_cast<int>(place - change_.next.begin()),
                            .size = static_cast<int>(change_.next.size())});
    const auto published = exchange_(rank, next ? next->publish() : "");
    if (next) {
      std::vector<std::string> offers;
      for (const int member : change_.next)
        offers.push_back(published[member < 0 ? 4u : static_cast<std::size_t>(member)]);
      next->connect(offers);
      std::vector<double> data(1000);
      check_sum(*next, data.data(), data.size());
    }
    exchange_(rank, "");
  }

  void disturb(Group& old, int rank) {
    if (!change_.in_collective) {
      old.abort();
      CHECK_THROWS_AS(old.barrier(), GroupBroken);
      return;
    }
    if (rank == 3) return old.abort();
    std::jthread aborter([&] {
      while (made_by("ncclAllReduce") < 3) std::this_thread::yield();
      let_pass(20);
      old.abort();
    });
    std::vector<float> data(10);
    CHECK_THROWS_AS(old.all_reduce(data.data(), DataType::float32, data.size()), GroupBroken);
  }

  const Change change_;
  Exchange exchange_;
};

TEST_CASE("the next world's communicator is formed in the way that fits") {
  const std::vector<Change> changes = {
      {"planned: one comes", {0, 1, 2, 3, -1}, false, false, 22809, 5, 0},
      {"planned: two go", {0, 2}, false, false, 22809, 2, 0},
      {"planned: one is left", {1}, false, false, 22809, 0, 0},
      {"forced between collectives: one is gone", {0, 1, 2}, true, false, 22809, 0, 3},
      {"forced in a collective: one is gone", {0, 1, 2}, true, true, 22809, 3, 0},
      {"forced in a collective: replaced", {0, 1, 2, -1}, true, true, 22809, 4, 0},
      {"forced, nobody went", {0, 1, 2, 3}, true, false, 22809, 4, 0},
      {"forced, one is left", {2}, true, true, 22809, 0, 0},
      {"a version with trouble", {0, 1, 2}, true, false, 22807, 3, 0},
  };
  for (const Change& change : changes) {
    CAPTURE(change.what);
    const CleanGpu clean;
    fake_gpu::set_version(change.version);
    ChangeTest(change).run();
    CHECK(made_by("ncclCommInitRankConfig") == change.inits);
    CHECK(made_by("ncclCommShrink") == change.shrinks);
  }
}

TEST_CASE("a hundred re-forms leave nothing behind") {
  const CleanGpu clean;
  run_planes(
      3,
      [](int rank, DataPlane& plane, Exchange& exchange) {
        // Worlds of three, two, three and so on: a forced loss, which shrinks, and a forced return.
        for (int i = 0; i < 50; ++i) {
          const auto whole = form(plane, exchange, rank, 3);
          whole->barrier();
          exchange(rank, "");
          whole->abort();
          whole->close();
          std::unique_ptr<Group> part =
              rank < 2 ? plane.create({.rank = rank, .size = 2}) : nullptr;
          auto offers = exchange(rank, part ? part->publish() : "");
          offers.pop_back();
          if (part) {
            part->connect(offers);
            part->barrier();
          }
          exchange(rank, "");
          if (part) part->abort();
        }
      },
      nccl_planes());
  CHECK(made_by("ncclCommShrink") == 100);
  CHECK(made_by("ncclCommInitRankConfig") == 150);
  // One for each init; an id that a shrink did not need is offered again.
  CHECK(made_by("ncclGetUniqueId") <= 51);
}
