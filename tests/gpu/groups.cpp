// Measures what NCCL groups of several ranks on one GPU cost, and checks that they leave nothing
// behind.
//
//     gpu_groups [RANKS [FORMS [REFORMS [STATE_MB]]]]         4 6 100 4096; 0 leaves a part out
//
// Prints each figure as soon as it is known, because the GPU may be taken away, and a table at the
// end. Exits with 1 when something is wrong: a sum, a state, or memory that grows.
#include <dlfcn.h>
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "tests/gpu/rank_processes.hpp"
#include "worker/gpu/communicator_cache.hpp"
#include "worker/gpu/nccl_group.hpp"
#include "worker/state/state_transfer.hpp"

namespace {

using namespace elasticrun::worker::collective;
using namespace elasticrun;
using namespace elasticrun::worker::gpu;
using namespace elasticrun::worker::state;
using namespace elasticrun::worker::testing;
using Clock = std::chrono::steady_clock;

constexpr NcclLimits limits{.form = std::chrono::seconds(30), .stop = std::chrono::seconds(10)};

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

void require(bool good, const std::string& what) {
  if (!good) throw std::runtime_error(what);
}

std::shared_ptr<Gpu> open_gpu() {
  const auto gpu = Gpu::open("here", 0);
  if (!gpu) throw std::runtime_error(gpu.error().text);
  if (!(*gpu)->nccl_usable()) throw std::runtime_error((*gpu)->nccl_usable().error().text);
  return *gpu;
}

double mib_used_on_gpu() {
  using MemoryInfo = int (*)(std::size_t*, std::size_t*);
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  const auto info = reinterpret_cast<MemoryInfo>(::dlsym(driver, "cuMemGetInfo_v2"));
  std::size_t free = 0, total = 0;
  require(info && info(&free, &total) == 0, "cuMemGetInfo failed");
  return static_cast<double>(total - free) / (1 << 20);
}

// Resident, without what malloc keeps for later.
double mib_used_on_host() {
  ::malloc_trim(0);
  std::ifstream statm("/proc/self/statm");
  long pages = 0, resident = 0;
  statm >> pages >> resident;
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

// What malloc has given out and not got back; the rest of what a process uses is mapped.
double mib_of_malloc() {
  const struct mallinfo2 info = ::mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd) / (1 << 20);
}

long entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

struct Row {
  std::vector<double> values;
  void add(double value) { values.push_back(value); }
  double last() const { return values.empty() ? 0 : values.back(); }
  std::string text() {
    std::sort(values.begin(), values.end());
    return fmt::format("{:10.1f} {:10.1f}", values[values.size() / 2], values.back());
  }
};

// ---------------------------------------------------------------- forming: init against shrink

struct Forming {
  Row init, warm_up, abort, shrink, warm_up_after, init_smaller;
};

nccl::UniqueId shared_id(CommunicatorCache& cache, int rank, PipeExchange& exchange) {
  return *unique_id_from(exchange(rank == 0 ? to_hex(cache.acquire()) : "").front());
}

double first_sum(Communicator& comm, const Gpu& gpu) {
  const auto begin = Clock::now();
  GpuBuffer one(gpu);
  std::byte* const memory = one.reserve(sizeof(float));
  comm.run("the first sum", gpu.stream(), limits.form, [&](nccl::Comm nccl_comm) {
    return gpu.nccl().all_reduce(memory, memory, 1, nccl::float32, nccl::sum, nccl_comm,
                                 gpu.stream());
  });
  return ms_since(begin);
}

// A communicator of all ranks, after its first sum.
std::unique_ptr<Communicator> form_all(int rank, int size, const std::shared_ptr<Gpu>& gpu,
                                       CommunicatorCache& cache, PipeExchange& exchange,
                                       Forming& times) {
  auto all = std::make_unique<Communicator>(gpu, limits);
  const nccl::UniqueId id = shared_id(cache, rank, exchange);
  const auto begin = Clock::now();
  all->init(rank, size, {id});
  times.init.add(ms_since(begin));
  times.warm_up.add(first_sum(*all, *gpu));
  exchange("");
  return all;
}

// The last rank goes between two sums, and the others shrink the communicator.
void shrink_once(int rank, int size, const std::shared_ptr<Gpu>& gpu, CommunicatorCache& cache,
                 PipeExchange& exchange, Forming& times) {
  const auto all = form_all(rank, size, gpu, cache, exchange, times);
  all->halt();
  if (rank == size - 1) return;
  Communicator fewer(gpu, limits);
  const auto begin = Clock::now();
  fewer.shrink(*all, {size - 1});
  times.shrink.add(ms_since(begin));
  times.warm_up_after.add(first_sum(fewer, *gpu));
}

// The last rank stays out of a sum; the others are stopped in it, and form another communicator.
void form_once(int rank, int size, const std::shared_ptr<Gpu>& gpu, CommunicatorCache& cache,
               PipeExchange& exchange, Forming& times) {
  const auto all = form_all(rank, size, gpu, cache, exchange, times);
  const bool stays = rank < size - 1;
  Clock::time_point begin;
  if (stays) {
    std::jthread controller([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      begin = Clock::now();
      all->halt();
    });
    try {
      first_sum(*all, *gpu);
    } catch (const GroupBroken&) {
    }
    controller.join();
    times.abort.add(ms_since(begin));
  }
  exchange("");
  const nccl::UniqueId next = shared_id(cache, rank, exchange);
  if (!stays) return;
  Communicator again(gpu, limits);
  begin = Clock::now();
  again.init(rank, size - 1, {next});
  times.init_smaller.add(ms_since(begin));
  first_sum(again, *gpu);
}

void measure_forming(int rank, int size, int forms, PipeExchange& exchange) {
  const auto gpu = open_gpu();
  CommunicatorCache cache(gpu, limits);
  Forming times;
  if (rank == 0)
    fmt::print("NCCL {}, driver {}, {} ranks on one GPU\n",
               nccl_version_text(gpu->libraries().nccl_version),
               driver_version_text(gpu->libraries().driver_version), size);
  for (int i = 0; i < forms; ++i) {
    if (gpu->features().shrink) shrink_once(rank, size, gpu, cache, exchange, times);
    form_once(rank, size, gpu, cache, exchange, times);
    if (rank == 0)
      fmt::print("  {}: init {:.1f}, sum {:.1f}, stop {:.1f}, shrink {:.1f}, sum {:.1f} ms\n",
                 i + 1, times.init.last(), times.warm_up.last(), times.abort.last(),
                 times.shrink.last(), times.warm_up_after.last());
  }
  if (rank != 0) return;
  fmt::print("forming, ms: median, most\n");
  fmt::print("  full init, {} ranks        {}\n", size, times.init.text());
  fmt::print("  first sum after it         {}\n", times.warm_up.text());
  fmt::print("  stopping a sum under way   {}\n", times.abort.text());
  fmt::print("  full init, {} ranks        {}\n", size - 1, times.init_smaller.text());
  if (times.shrink.values.empty())
    fmt::print("  shrink to {} ranks         never done\n", size - 1);
  else
    fmt::print("  shrink to {} ranks         {}\n  first sum after it         {}\n", size - 1,
               times.shrink.text(), times.warm_up_after.text());
}

// ---------------------------------------------------------------- many groups, one after the other

// Every second group is aborted, so both ways of ending and all ways of forming occur. What has
// ended is freed in the background, and waited for where it is counted.
void check_leaks(int rank, int size, int reforms, PipeExchange& exchange) {
  const auto gpu = open_gpu();
  const int parts = 4, settled = 2;  // allocators and caches take what they need before
  double device = 0, host = 0, device_more = 0, host_more = 0;
  for (int part = 1; part <= parts; ++part) {
    auto plane = make_nccl_plane(gpu, limits);
    for (int i = 0; i < reforms / parts; ++i) {
      const auto group = plane->create({.rank = rank, .size = size});
      group->connect(exchange(group->publish()));
      std::vector<float> ones(1000, 1);
      group->all_reduce(ones.data(), DataType::float32, ones.size());
      require(ones.back() == static_cast<float>(size), "a sum is wrong");
      exchange("");
      if (i % 2 == 1) group->abort();
      group->close();
      exchange("");
    }
    plane = nullptr;
    exchange("");
    if (rank == 0)
      fmt::print(
          "  {} groups: {:.0f} MiB on the GPU, {:.0f} MiB on the host, {:.0f} of them malloc's; {} "
          "threads, {} files\n",
          reforms / parts * part, mib_used_on_gpu(), mib_used_on_host(), mib_of_malloc(),
          entries("/proc/self/task"), entries("/proc/self/fd"));
    if (part == settled) {
      device = mib_used_on_gpu();
      host = mib_used_on_host();
    }
    if (part == parts) {
      device_more = mib_used_on_gpu() - device;
      host_more = mib_used_on_host() - host;
    }
    exchange("");
  }
  if (rank == 0)
    fmt::print(
        "{} groups in a row, from the {}th on: {:+.1f} MiB on the GPU (all ranks), {:+.1f} MiB on "
        "the host (a rank)\n",
        reforms, reforms / parts * settled, device_more, host_more);
  // A communicator holds tens of MiB on the GPU, so it shows when every tenth one leaks.
  require(device_more < 64, "communicators leak on the GPU");
  require(host_more < 100, "communicators leak on the host");
}

// ---------------------------------------------------------------- the state of a newcomer

void fill(const Gpu& gpu, std::byte* memory, std::size_t bytes, unsigned char value) {
  gpu.check(gpu.cuda().fill(reinterpret_cast<cuda::Address>(memory), value, bytes, gpu.stream()),
            "cuMemsetD8Async");
  gpu.wait();
}

// What NCCL itself takes to bring the last rank a part from each of the others, in one message.
void send_parts(Group& group, std::byte* state, std::size_t bytes) {
  const int newcomer = group.size() - 1;
  const std::size_t part = bytes / static_cast<std::size_t>(newcomer);
  const auto place = [&](int rank) { return state + part * static_cast<std::size_t>(rank); };
  if (group.rank() != newcomer)
    return group.post_send(newcomer, place(group.rank()), part, 0)->wait();
  std::vector<std::unique_ptr<Pending>> parts;
  for (int rank = 0; rank < newcomer; ++rank)
    parts.push_back(group.post_recv(rank, place(rank), part, 0));
  for (const auto& one : parts) one->wait();
}

void measure_transfer(int rank, int size, std::size_t bytes, PipeExchange& exchange) {
  const auto gpu = open_gpu();
  const auto plane = make_nccl_plane(gpu, limits);
  const auto group = plane->create({.rank = rank, .size = size});
  group->connect(exchange(group->publish()));
  GpuBuffer memory(*gpu);
  std::byte* const state = memory.reserve(bytes);
  // As many arrays as a model of that size has.
  constexpr std::size_t arrays = 160;
  StateTable table;
  table.use_gpu(gpu);
  for (std::size_t i = 0; i < arrays; ++i)
    require(table.add_state(fmt::format("array {}", i), state + bytes / arrays * i, bytes / arrays)
                .has_value(),
            "no state");
  table.seal();
  const bool newcomer = rank == size - 1;
  std::vector<bool> holds(static_cast<std::size_t>(size), true);
  holds.back() = false;
  Row broadcast, messages, transfer;
  for (int i = 0; i < 4; ++i) {
    fill(*gpu, state, bytes, newcomer ? 0 : 7);
    exchange("");
    auto begin = Clock::now();
    group->broadcast(state, bytes, 0);
    if (i > 0) broadcast.add(ms_since(begin));
    exchange("");
    begin = Clock::now();
    send_parts(*group, state, bytes);
    if (i > 0) messages.add(ms_since(begin));
    fill(*gpu, state, bytes, newcomer ? 0 : 9);
    exchange("");
    begin = Clock::now();
    StateTransfer one(*group, holds, table);
    one.exchange("step", false);
    one.commit();
    if (i > 0) transfer.add(ms_since(begin));
    if (newcomer && i > 0)
      fmt::print("  {}: broadcast {:.0f} ms, messages {:.0f} ms, state {:.0f} ms\n", i,
                 broadcast.last(), messages.last(), transfer.last());
    std::array<unsigned char, 2> ends{};
    gpu->copy_and_wait(&ends[0], state, 1, gpu->stream());
    gpu->copy_and_wait(&ends[1], state + bytes / arrays * arrays - 1, 1, gpu->stream());
    require(ends[0] == 9 && ends[1] == 9, "the state has not arrived");
  }
  exchange("");
  if (!newcomer) return;
  const std::string broadcast_text = broadcast.text(), messages_text = messages.text(),
                    transfer_text = transfer.text();
  fmt::print("{} MiB of state to a newcomer, {} ranks have it; ms: median, most\n", bytes >> 20,
             size - 1);
  fmt::print("  ncclBroadcast of as much   {}\n  one message from each      {}\n", broadcast_text,
             messages_text);
  fmt::print("  state transfer             {}\n", transfer_text);
  fmt::print("  the transfer reaches {:.0f} % of the broadcast's rate, {:.0f} % of the messages'\n",
             100 * broadcast.values[1] / transfer.values[1],
             100 * messages.values[1] / transfer.values[1]);
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const auto number = [&](int i, int otherwise) {
    return argc > i ? std::atoi(argv[i]) : otherwise;
  };
  const int ranks = number(1, 4), forms = number(2, 6), reforms = number(3, 100),
            state_mb = number(4, 4096);
  if (ranks < 2) {
    fmt::print("usage: gpu_groups [RANKS [FORMS [REFORMS [STATE_MB]]]], at least 2 ranks\n");
    return 2;
  }
  bool well = true;
  // Each part runs in processes of its own: a part that fails leaves a healthy GPU to the others.
  const auto part = [&](int amount, const auto& measure) {
    if (amount == 0) return;
    well &=
        run_processes(ranks, [&](int rank, PipeExchange& exchange) { measure(rank, exchange); });
  };
  part(forms,
       [&](int rank, PipeExchange& exchange) { measure_forming(rank, ranks, forms, exchange); });
  part(reforms,
       [&](int rank, PipeExchange& exchange) { check_leaks(rank, ranks, reforms, exchange); });
  part(state_mb, [&](int rank, PipeExchange& exchange) {
    measure_transfer(rank, ranks, static_cast<std::size_t>(state_mb) << 20, exchange);
  });
  fmt::print("{}\n", well ? "all well" : "NOT WELL: see above");
  return well ? 0 : 1;
}
