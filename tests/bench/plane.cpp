// What the data plane costs on this machine: forming, aborting, moving state, reducing.
// tests/bench/run --only plane prints it; compare on one machine only.
//
//     bench_plane [full|small] [form|abort|transfer|reduction|allreduce]
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "tests/unit/worker/ranks.hpp"
#include "worker/state/state_transfer.hpp"
#include "worker/training/gradient_reduction.hpp"

using namespace elasticrun::worker::core;
using namespace elasticrun::worker::collective;
using namespace elasticrun::worker::state;
using namespace elasticrun::worker::training;
using namespace elasticrun::worker::testing;
using Clock = std::chrono::steady_clock;

namespace {

bool small = false;  // only check that it still runs

int times(int full) { return small ? std::min(full, 3) : full; }

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

std::string summary(std::vector<double> values) {
  if (values.empty()) return "none";
  std::sort(values.begin(), values.end());
  return fmt::format("median {:.3f} max {:.3f}", values[values.size() / 2], values.back());
}

void bench_form(int size) {
  run_planes(size, [&](int rank, DataPlane& plane, Exchange& exchange) {
    std::vector<double> forming, closing;
    for (int i = 0; i < times(40); ++i) {
      exchange(rank, "");
      auto start = Clock::now();
      const auto group = form(plane, exchange, rank, size);
      forming.push_back(ms_since(start));
      exchange(rank, "");
      start = Clock::now();
      group->close();
      closing.push_back(ms_since(start));
    }
    if (rank == 0)
      fmt::print("form n={}: {} ms; close: {} ms\n", size, summary(forming), summary(closing));
  });
}

void bench_abort(int size) {
  std::vector<double> own, others;
  std::mutex mutex;
  run_planes(size, [&](int rank, DataPlane& plane, Exchange& exchange) {
    for (int i = 0; i < times(40); ++i) {
      static std::atomic<Clock::time_point> aborted;
      const auto group = form(plane, exchange, rank, size);
      std::vector<float> data(1'000'000, 1);
      std::jthread killer;
      exchange(rank, "");
      if (rank == 0)
        killer = std::jthread([&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          aborted = Clock::now();
          group->abort();
        });
      try {
        for (;;) group->all_reduce(data.data(), DataType::float32, data.size());
      } catch (const GroupBroken&) {
        const double took = ms_since(aborted.load());
        const std::lock_guard lock(mutex);
        (rank == 0 ? own : others).push_back(took);
      }
      exchange(rank, "");
    }
  });
  fmt::print("abort in all-reduce of 4 MB, n={}: own {} ms; peers {} ms\n", size, summary(own),
             summary(others));
}

void bench_abort_connect() {
  std::vector<double> took;
  const auto plane = make_gloo_plane({});
  for (int i = 0; i < times(40); ++i) {
    const auto group = plane->create({.rank = 0, .size = 3}),
               a = plane->create({.rank = 1, .size = 3}), b = plane->create({.rank = 2, .size = 3});
    const std::vector<std::string> all{group->publish(), a->publish(), b->publish()};
    std::atomic<Clock::time_point> aborted;
    {
      std::jthread killer([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        aborted = Clock::now();
        group->abort();
      });
      try {
        group->connect(all);
        continue;  // this side dialled, twice
      } catch (const GroupBroken&) {
        took.push_back(ms_since(aborted));
      }
    }
  }
  fmt::print("abort in connect: {} ms\n", summary(took));
}

void bench_transfer(int holders, int receivers, std::size_t bytes, bool keep) {
  const int size = holders + receivers;
  std::vector<bool> holds(static_cast<std::size_t>(size), false);
  std::fill_n(holds.begin(), holders, true);
  run_planes(size, [&](int rank, DataPlane& plane, Exchange& exchange) {
    const auto group = form(plane, exchange, rank, size);
    std::vector<char> state(bytes, 'x');
    StateTable table;
    if (!table.add_state("s", state.data(), bytes)) std::abort();
    table.seal();
    std::vector<double> exchanged, committed, plain, broadcast;
    for (int i = 0; i < times(5); ++i) {
      exchange(rank, "");
      auto start = Clock::now();
      StateTransfer transfer(*group, holds, table);
      std::string progress = "p";
      transfer.exchange(progress, keep);
      exchanged.push_back(ms_since(start));
      start = Clock::now();
      if (const Carried carried = transfer.commit(); !carried.progress.empty())
        progress = carried.progress;
      committed.push_back(ms_since(start));
      exchange(rank, "");
      start = Clock::now();
      if (rank == 0) group->send(size - 1, state.data(), bytes, 7);
      if (rank == size - 1) group->recv(0, state.data(), bytes, 7);
      plain.push_back(ms_since(start));
      exchange(rank, "");
      start = Clock::now();
      group->broadcast(state.data(), bytes, 0);
      broadcast.push_back(ms_since(start));
    }
    if (rank == size - 1)
      fmt::print(
          "state {} MB, {} to {}, {}: exchange {} ms; commit {} ms\n"
          "    plain send to one {} ms; broadcast to all {} ms\n",
          bytes / 1'000'000, holders, receivers, keep ? "kept beside" : "in place",
          summary(exchanged), summary(committed), summary(plain), summary(broadcast));
  });
}

void bench_reduction(std::size_t bytes, int tensors, int calls) {
  run_ranks(1, [&](Group& group) {
    const std::size_t count = bytes / sizeof(float) / static_cast<std::size_t>(tensors);
    std::vector<std::vector<float>> gradients(static_cast<std::size_t>(tensors),
                                              std::vector<float>(count, 1));
    StateTable table;
    for (std::size_t i = 0; i < gradients.size(); ++i)
      if (!table.add_gradients(std::to_string(i), gradients[i].data(), DataType::float32, count))
        std::abort();
    table.seal();
    Reduction reduction(table, 4);
    std::vector<double> extras(4), took;
    for (int i = 0; i < times(1000); ++i) {
      const auto start = Clock::now();
      // Weights other than 1.
      reduction.begin_step(
          {.calls = static_cast<std::size_t>(calls), .global_samples = 3.0 * calls});
      for (int c = 0; c < calls; ++c) reduction.accumulate(1);
      reduction.reduce(group, extras);
      took.push_back(1000 * ms_since(start));
    }
    fmt::print("reduction without the collective, {} B in {} tensors, {} calls: {} us\n", bytes,
               tensors, calls, summary(took));
  });
}

void bench_all_reduce(int size, std::size_t count) {
  run_ranks(size, [&](Group& group) {
    std::vector<float> data(count, 0);
    std::vector<double> took;
    for (int i = 0; i < times(100); ++i) {
      const auto start = Clock::now();
      group.all_reduce(data.data(), DataType::float32, count);
      took.push_back(ms_since(start));
    }
    if (group.rank() == 0)
      fmt::print("all-reduce n={} {} B: {} ms\n", size, 4 * count, summary(took));
  });
}

}  // namespace

int main(int count, char** arguments) {
  small = count > 1 && arguments[1] == std::string("small");
  const std::string only = count > 2 ? arguments[2] : "";
  const auto wanted = [&](const char* name) { return only.empty() || only == name; };
  if (wanted("form"))
    for (const int size : {2, 4, 8}) bench_form(size);
  if (wanted("abort")) {
    for (const int size : {2, 4}) bench_abort(size);
    bench_abort_connect();
  }
  if (wanted("transfer"))
    for (const std::size_t bytes : {1'000'000u, small ? 4'000'000u : 400'000'000u})
      for (const bool keep : {true, false}) {
        bench_transfer(1, 1, bytes, keep);
        bench_transfer(3, 1, bytes, keep);
        bench_transfer(1, 3, bytes, keep);
      }
  if (wanted("reduction"))
    for (const std::size_t bytes : {1u << 10, 1u << 20, 16u << 20}) {
      bench_reduction(bytes, 1, 1);
      bench_reduction(bytes, 8, 1);
      bench_reduction(bytes, 8, 2);
    }
  if (wanted("allreduce"))
    for (const int size : {2, 4})
      for (const std::size_t elements : {2u, 256u, 4096u, 16'384u, 65'536u})
        bench_all_reduce(size, elements);
}
