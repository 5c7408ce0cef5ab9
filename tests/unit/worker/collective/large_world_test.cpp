// A world in which no rank is connected to all others, with real Gloo and forty ranks.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <numeric>

#include "tests/unit/worker/collective/check_all_reduce.hpp"
#include "tests/unit/worker/ranks.hpp"
#include "worker/core/neighbours.hpp"
#include "worker/state/state_transfer.hpp"

using namespace elasticrun::worker::core;
using namespace elasticrun::worker::collective;
using namespace elasticrun::worker::state;
using namespace elasticrun::worker::testing;

namespace {

constexpr int size = 40;

std::vector<bool> holders_but(const std::vector<int>& newcomers) {
  std::vector<bool> holds(size, true);
  for (const int rank : newcomers) holds[static_cast<std::size_t>(rank)] = false;
  return holds;
}

// Each rank gets only the addresses of its neighbours.
std::unique_ptr<Group> form_large(DataPlane& plane, Exchange& exchange, int rank,
                                  const std::vector<bool>& holds) {
  const int ranks = static_cast<int>(holds.size());
  const std::vector<int> own = neighbours(rank, ranks, sides_of_transfer(holds));
  auto group = plane.create({.rank = rank, .size = ranks, .neighbours = own});
  CHECK(group->needs() == own);
  std::vector<std::string> published = exchange(rank, group->publish());
  for (int peer = 0; peer < ranks; ++peer)
    if (!std::ranges::binary_search(own, peer)) published[static_cast<std::size_t>(peer)].clear();
  group->connect(published);
  return group;
}

void run_large(const std::vector<bool>& holds, const std::function<void(Group&)>& body) {
  run_planes(static_cast<int>(holds.size()), [&](int rank, DataPlane& plane, Exchange& exchange) {
    const auto group = form_large(plane, exchange, rank, holds);
    body(*group);
    exchange(rank, "");  // no rank may close its connections before the slower ones are done
  });
}

std::size_t sockets() {
  std::size_t count = 0;
  std::error_code gone;  // a descriptor may be closed during the iteration
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    count += std::filesystem::read_symlink(entry, gone).string().starts_with("socket:");
  return count;
}

}  // namespace

TEST_CASE("collectives reach all ranks over the connections between neighbours") {
  for (const int ranks : {33, size}) {
    CAPTURE(ranks);
    run_large(std::vector<bool>(static_cast<std::size_t>(ranks), true), [](Group& group) {
      for (const std::size_t count : {1u, 3u, 1000u, 100'003u}) {
        check_all_reduce<float>(group, count);
        check_all_reduce<double>(group, count);
      }
      for (const int root : {0, 1, 17, group.size() - 1}) {
        std::string text(1000, group.rank() == root ? 'x' : '-');
        group.broadcast(text.data(), text.size(), root);
        CHECK(text == std::string(1000, 'x'));
      }
      group.barrier();
    });
  }
}

TEST_CASE("inexact sums have the same bits on every rank of a large world") {
  std::mutex mutex;
  std::vector<std::vector<float>> results;
  run_large(std::vector<bool>(size, true), [&](Group& group) {
    std::vector<float> data(500);
    for (std::size_t i = 0; i < data.size(); ++i)
      data[i] = 1.0f / static_cast<float>(3 + group.rank() * 7 + static_cast<int>(i));
    group.all_reduce(data.data(), DataType::float32, data.size());
    const std::lock_guard lock(mutex);
    results.push_back(std::move(data));
  });
  REQUIRE(results.size() == size);
  for (const auto& result : results) CHECK(result == results.front());
}

TEST_CASE("a rank has sockets only for its neighbours") {
  const std::vector<bool> holds = holders_but({39});
  std::size_t ends = 0;
  for (int rank = 0; rank < size; ++rank)
    ends += neighbours(rank, size, sides_of_transfer(holds)).size();
  CHECK(ends < size * (size - 1) / 2);
  std::atomic<std::size_t> before{0}, after{0};
  run_planes(size, [&](int rank, DataPlane& plane, Exchange& exchange) {
    exchange(rank, "");
    // Devices have listening sockets, too, but these exist from the first group on.
    const auto first = form_large(plane, exchange, rank, holds);
    first->barrier();
    exchange(rank, "");
    if (rank == 0) before = sockets();
    exchange(rank, "");
    const auto second = form_large(plane, exchange, rank, holds);
    second->barrier();
    exchange(rank, "");
    if (rank == 0) after = sockets();
    exchange(rank, "");
  });
  CHECK(after - before == ends);
}

TEST_CASE("the state reaches the newcomers of a large world") {
  std::vector<int> all_but_one(size - 1);
  std::iota(all_but_one.begin(), all_but_one.end(), 1);
  for (const std::vector<int>& newcomers :
       {std::vector{39}, std::vector{0, 20}, std::vector{5, 6, 7, 30, 38}, all_but_one}) {
    CAPTURE(newcomers.size());
    const std::vector<bool> holds = holders_but(newcomers);
    run_large(holds, [&](Group& group) {
      const bool holder = holds[static_cast<std::size_t>(group.rank())];
      std::vector<unsigned char> state((3u << 20) + 13);
      for (std::size_t i = 0; i < state.size(); ++i)
        state[i] = holder ? static_cast<unsigned char>(i * 2654435761u >> 13) : 0;
      StateTable table;
      REQUIRE(table.add_state("state", state.data(), state.size()).has_value());
      table.seal();
      StateTransfer transfer(group, holds, table);
      std::string progress = holder ? "step 17" : "";
      transfer.exchange(progress, true);
      if (const Carried carried = transfer.commit(); !carried.progress.empty())
        progress = carried.progress;
      CHECK(progress == "step 17");
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < state.size(); ++i)
        wrong += state[i] != static_cast<unsigned char>(i * 2654435761u >> 13);
      CHECK(wrong == 0);
    });
  }
}

TEST_CASE("one rank that aborts ends the waits of all others, neighbours or not") {
  for (const std::size_t count : {10u, 1'000'000u}) {
    CAPTURE(count);
    std::atomic<int> broken{0};
    run_planes(size, [&](int rank, DataPlane& plane, Exchange& exchange) {
      const auto group = form_large(plane, exchange, rank, std::vector<bool>(size, true));
      std::vector<float> data(count);
      group->barrier();
      try {
        if (rank == 11) group->abort();
        group->all_reduce(data.data(), DataType::float32, count);
      } catch (const GroupBroken&) {
        ++broken;
      }
      exchange(rank, "");
    });
    CHECK(broken == size);
  }
}
