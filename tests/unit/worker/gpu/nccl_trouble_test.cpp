// Groups over NCCL when calls fail or hang: every wait ends, and nothing is left behind.
#include <atomic>
#include <functional>

#include "tests/unit/worker/gpu/gpu_ranks.hpp"

using namespace elasticrun;
using namespace elasticrun::worker::collective;
using namespace elasticrun::worker::gpu;
using namespace elasticrun::worker::testing;
using Clock = std::chrono::steady_clock;
using fake_gpu::Trouble;

namespace {

constexpr NcclLimits short_limits{.form = std::chrono::milliseconds(300),
                                  .stop = std::chrono::milliseconds(300)};
// Generous, since the machine may be busy with other tests.
constexpr auto bounded = std::chrono::seconds(15);

// The errors of two ranks that form a group and sum over it; "well" where there is none.
std::vector<std::string> outcomes(NcclLimits limits = short_limits) {
  std::vector<std::string> said(2);
  Exchange exchange(2);
  const auto start = Clock::now();
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < 2; ++rank)
      threads.emplace_back([&, rank] {
        std::string& outcome = said[static_cast<std::size_t>(rank)];
        try {
          const auto plane = nccl_planes(limits)();
          const auto group = plane->create({.rank = rank, .size = 2});
          group->connect(exchange(rank, group->publish()));
          exchange(rank, "");
          std::vector<float> data(10, 1);
          group->all_reduce(data.data(), DataType::float32, data.size());
          outcome = data[9] == 2 ? "well" : "wrong";
        } catch (const GroupBroken& error) {
          outcome = error.what();
          exchange.fail();
        }
      });
  }
  CHECK(Clock::now() - start < bounded);
  return said;
}

bool any_says(const std::vector<std::string>& said, const std::string& words) {
  for (const std::string& one : said)
    if (one.find(words) != one.npos) return true;
  MESSAGE(said[0], " | ", said[1]);
  return false;
}

}  // namespace

TEST_CASE("each failure and each hang ends with a reason") {
  struct Row {
    const char* call;
    int nth;
    Trouble trouble;
    const char* says;
  };
  const std::vector<Row> rows = {
      {"ncclGetUniqueId", 1, Trouble::fail, "NCCL gave no unique id: fake words"},
      {"ncclCommInitRankConfig", 1, Trouble::fail,
       "forming with 2 members: NCCL failed internally (fake words) (nccl init: a rank has no "
       "communicator to shrink)"},
      {"ncclCommInitRankConfig", 2, Trouble::late,
       "forming with 2 members: the peers did not come in time"},
      {"ncclCommInitRankConfig", 1, Trouble::broken, "forming with 2 members: a peer is gone"},
      {"ncclAllReduce", 1, Trouble::fail, "warming up with 2 members: NCCL failed internally"},
      {"ncclAllReduce", 2, Trouble::late, "warming up with 2 members: the peers did not come"},
      {"ncclAllReduce", 1, Trouble::broken, "warming up with 2 members: a peer is gone"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.call);
    CAPTURE(row.nth);
    CAPTURE(static_cast<int>(row.trouble));
    const CleanGpu clean;
    fake_gpu::plan(row.call, row.nth, row.trouble);
    CHECK(any_says(outcomes(), row.says));
  }
}

namespace {

// One rank sums while the other does not take part; `halt` is called during the sum. Returns how
// the sum ended, and how long after the halt.
struct Ended {
  std::string said;
  std::chrono::nanoseconds after{0};
};
Ended halted_sum(NcclLimits limits, const std::function<void(Group&)>& halt,
                 const std::function<void(DataPlane&)>& then = {}) {
  Ended ended;
  run_planes(
      2,
      [&](int rank, DataPlane& plane, Exchange& exchange) {
        const auto group = form(plane, exchange, rank, 2);
        exchange(rank, "");
        if (rank == 0) {
          Clock::time_point halted;
          const int before = fake_gpu::count_of("ncclAllReduce");
          std::jthread killer([&] {
            while (fake_gpu::count_of("ncclAllReduce") == before) std::this_thread::yield();
            let_pass(20);
            halted = Clock::now();
            halt(*group);
          });
          std::vector<float> data(10);
          try {
            group->all_reduce(data.data(), DataType::float32, data.size());
            ended.said = "returned";
          } catch (const GroupBroken& error) {
            ended.said = error.what();
          }
          killer.join();
          ended.after = Clock::now() - halted;
          if (then) then(plane);
        }
        exchange(rank, "");
        group->abort();
      },
      nccl_planes(limits));
  return ended;
}

}  // namespace

TEST_CASE("an abort from another thread ends a collective") {
  const CleanGpu clean;
  const Ended ended = halted_sum(test_limits, [](Group& group) { group.abort(); });
  CHECK(ended.said == "all-reduce with 2 members: aborted");
  CHECK(ended.after < std::chrono::seconds(5));
  CHECK(fake_gpu::count_of("ncclCommAbort") >= 1);
}

TEST_CASE(
    "an NCCL that does not return from an abort makes its process unusable, but does not hang it") {
  CleanGpu clean;
  clean.abandoned = 10 * sizeof(float);
  fake_gpu::set_version(22707);
  fake_gpu::plan("ncclCommAbort", 1, Trouble::stuck);
  std::string next;
  const Ended ended = halted_sum(
      short_limits, [](Group& group) { group.abort(); },
      [&](DataPlane& plane) {
        try {
          plane.create({.rank = 0, .size = 2})->publish();
        } catch (const GroupBroken& error) {
          next = error.what();
        }
        fake_gpu::release();
        while (fake_gpu::communicators() > 1) std::this_thread::yield();
      });
  CHECK(ended.said == "all-reduce with 2 members: aborted");
  CHECK(ended.after < bounded);
  CHECK(next.find("did not come back from an abort") != next.npos);
}

TEST_CASE("the next group sums while the abort of the one before has not come back") {
  for (const bool shrinks : {false, true}) {
    CAPTURE(shrinks);
    const CleanGpu clean;
    for (int nth = 1; nth <= 3; ++nth) fake_gpu::plan("ncclCommAbort", nth, Trouble::late);
    run_planes(
        3,
        [&](int rank, DataPlane& plane, Exchange& exchange) {
          const auto first = form(plane, exchange, rank, 3);
          first->barrier();
          exchange(rank, "");
          first->abort();
          first->close();
          const int size = shrinks ? 2 : 3;
          const auto next = rank < size ? plane.create({.rank = rank, .size = size}) : nullptr;
          auto offers = exchange(rank, next ? next->publish() : "");
          offers.resize(static_cast<std::size_t>(size));
          if (next) {
            next->connect(offers);
            CHECK(next->formation().starts_with(shrinks ? "nccl shrink" : "nccl init"));
            std::vector<float> ones(10, 1);
            next->all_reduce(ones.data(), DataType::float32, ones.size());
            CHECK(ones[9] == static_cast<float>(size));
          }
          exchange(rank, "");
          CHECK(fake_gpu::communicators() == 3 + size);
          exchange(rank, "");
          fake_gpu::release();
        },
        nccl_planes(test_limits));
  }
}

TEST_CASE("an abort ends a connect that waits for a peer") {
  const CleanGpu clean;
  const auto plane = nccl_planes()();
  const auto group = plane->create({.rank = 0, .size = 2}),
             peer = plane->create({.rank = 1, .size = 2});
  const std::vector<std::string> offers{group->publish(), peer->publish()};
  std::jthread killer([&] {
    while (fake_gpu::count_of("ncclCommInitRankConfig") == 0) std::this_thread::yield();
    let_pass(20);
    group->abort();
  });
  CHECK_THROWS_WITH_AS(group->connect(offers), doctest::Contains("forming with 2 members: aborted"),
                       GroupBroken);
}

TEST_CASE("a peer's asynchronous error ends a sum, and the group with it") {
  const CleanGpu clean;
  fake_gpu::plan("ncclAllReduce", 3, Trouble::broken);
  const Ended ended = halted_sum(short_limits, [](Group&) {});
  CHECK(ended.said == "all-reduce with 2 members: a peer is gone");
}

TEST_CASE("a failed shrink uses up the parent, and the next world gets a new communicator") {
  for (const Trouble trouble : {Trouble::fail, Trouble::late, Trouble::broken}) {
    CAPTURE(static_cast<int>(trouble));
    const CleanGpu clean;
    fake_gpu::plan("ncclCommShrink", 1, trouble);
    fake_gpu::plan("ncclCommShrink", 2, trouble);
    run_planes(
        3,
        [](int rank, DataPlane& plane, Exchange& exchange) {
          const auto whole = form(plane, exchange, rank, 3);
          whole->barrier();
          exchange(rank, "");
          whole->abort();
          whole->close();
          for (const bool well : {false, true}) {
            const auto part = rank < 2 ? plane.create({.rank = rank, .size = 2}) : nullptr;
            auto offers = exchange(rank, part ? part->publish() : "");
            offers.pop_back();
            if (part && !well)
              CHECK_THROWS_WITH_AS(part->connect(offers),
                                   doctest::Contains("(nccl shrink: 1 of 3 ranks went"),
                                   GroupBroken);
            if (part && well) {
              part->connect(offers);
              part->barrier();
            }
            exchange(rank, "");
          }
        },
        nccl_planes(short_limits));
    CHECK(fake_gpu::count_of("ncclCommInitRankConfig") == 5);
  }
}

TEST_CASE("hosts with different versions of NCCL are named, and nothing is formed") {
  const CleanGpu clean;
  const auto plane = nccl_planes()();
  const auto group = plane->create({.rank = 0, .size = 2});
  const std::string own = group->publish();
  CHECK_THROWS_WITH_AS(group->connect({own, "nccl/22707/13000/n2/none/0/-1/0/"}),
                       "NCCL differs: 2.28.9 on n1; 2.27.7 on n2; install one version on all hosts",
                       GroupBroken);
  CHECK(fake_gpu::count_of("ncclCommInitRankConfig") == 0);
}

TEST_CASE("an invalid offer ends the forming of a group") {
  const CleanGpu clean;
  const auto plane = nccl_planes()();
  const auto group = plane->create({.rank = 0, .size = 2});
  CHECK_THROWS_AS(group->connect({group->publish(), "127.0.0.1/8f3a"}), GroupBroken);
}
