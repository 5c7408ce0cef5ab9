// The driver's half of the fake GPU. See fake_gpu.hpp.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "tests/fakes/fake_gpu_state.hpp"
#include "tests/fakes/fake_stream.hpp"

using namespace elasticrun::fake_gpu;

struct CUevent_st {
  std::shared_ptr<std::atomic<bool>> reached = std::make_shared<std::atomic<bool>>(true);
};

namespace {

struct Plan {
  int nth;
  Trouble trouble;
};

struct Piece {
  std::size_t bytes = 0;
  int ordinal = 0;
};

struct State {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> calls;
  std::map<std::string, int> counts;
  std::multimap<std::string, Plan> plans;
  std::map<std::uintptr_t, Piece> memory;  // on the GPUs, by address
  std::FILE* log = nullptr;
  bool stuck = true;
  bool ranks_are_threads = false;
  int version = 22809;
  int devices = 8;
  int communicators = 0, streams = 0, events = 0, overlaps = 0;
};

void log_from_environment(State& state) {
  if (const char* prefix = std::getenv("FAKE_GPU_LOG"))
    state.log = std::fopen((std::string(prefix) + "." + std::to_string(::getpid())).c_str(), "a");
}

void plan_from_environment(State& state) {
  const char* text = std::getenv("FAKE_GPU_TROUBLE");
  if (!text) return;
  const std::string said = text;
  const std::size_t first = said.find(':'), second = said.find(':', first + 1);
  const std::string kind = said.substr(second + 1);
  static const std::map<std::string, Trouble> kinds = {{"fail", Trouble::fail},
                                                       {"late", Trouble::late},
                                                       {"broken", Trouble::broken},
                                                       {"stuck", Trouble::stuck}};
  state.plans.emplace(said.substr(0, first),
                      Plan{std::stoi(said.substr(first + 1, second - first - 1)), kinds.at(kind)});
}

State& state() {
  static State* const one = [] {
    auto* made = new State;  // never freed: stream threads may outlive everything else
    log_from_environment(*made);
    plan_from_environment(*made);
    return made;
  }();
  return *one;
}

// Contexts are never freed, because a thread of the product may still use one.
struct Context {
  explicit Context(int device) : ordinal(device) {}
  int ordinal;
  std::atomic<int> pending = 0;
  CUstream_st by_default{pending};
  std::mutex mutex;
  std::set<CUstream_st*> streams;
};
thread_local Context* current = nullptr;

CUstream_st& stream_or_default(CUstream_st* stream) {
  return stream ? *stream : current->by_default;
}

template <class T>
T read(T State::*member) {
  const std::lock_guard lock(state().mutex);
  return state().*member;
}

void change(int State::*count, int by) {
  const std::lock_guard lock(state().mutex);
  state().*count += by;
}

// The ordinal of the GPU that holds this address; -1: none.
int ordinal_of(std::uintptr_t address) {
  const std::lock_guard lock(state().mutex);
  const auto above = state().memory.upper_bound(address);
  if (above == state().memory.begin()) return -1;
  const auto& [begin, piece] = *std::prev(above);
  return address < begin + piece.bytes ? piece.ordinal : -1;
}

}  // namespace

namespace elasticrun::fake_gpu {

void enqueue(CUstream_st* stream, std::function<void()> task) {
  CUstream_st& one = stream_or_default(stream);
  const std::lock_guard lock(one.mutex);
  one.count(1);
  one.tasks.push_back(std::move(task));
  one.wake.notify_one();
}

void occupy(CUstream_st* stream, std::shared_ptr<const std::atomic<bool>> until) {
  enqueue(stream, [until] {
    while (!*until) std::this_thread::yield();
  });
}

std::function<int()> work_of_others(CUstream_st* stream) {
  return [&one = stream_or_default(stream)] { return *one.pending_of_all - one.pending; };
}

std::optional<Trouble> note(const std::string& call) {
  State& s = state();
  std::unique_lock lock(s.mutex);
  s.calls.push_back(call);
  if (s.log) {
    std::fprintf(s.log, "%s\n", call.c_str());
    std::fflush(s.log);
  }
  const int nth = ++s.counts[call];
  const auto [first, last] = s.plans.equal_range(call);
  for (auto plan = first; plan != last; ++plan) {
    if (plan->second.nth != nth) continue;
    const Trouble trouble = plan->second.trouble;
    if (trouble == Trouble::stuck) s.changed.wait(lock, [&] { return !s.stuck; });
    return trouble;
  }
  return std::nullopt;
}

void await_release() {
  std::unique_lock lock(state().mutex);
  state().changed.wait(lock, [] { return !state().stuck; });
}

void count_overlap() { change(&State::overlaps, 1); }
int overlaps() { return read(&State::overlaps); }
int nccl_version() { return read(&State::version); }
void count_communicators(int by) { change(&State::communicators, by); }

void reset() {
  const std::lock_guard lock(state().mutex);
  state().calls.clear();
  state().counts.clear();
  state().plans.clear();
  state().overlaps = 0;
  state().stuck = true;
}

void plan(const std::string& call, int nth, Trouble trouble) {
  const std::lock_guard lock(state().mutex);
  state().plans.emplace(call, Plan{state().counts[call] + nth, trouble});
}

void release() {
  const std::lock_guard lock(state().mutex);
  state().stuck = false;
  state().changed.notify_all();
}

void set_version(int version) {
  const std::lock_guard lock(state().mutex);
  state().version = version;
}

void set_ranks_are_threads() {
  const std::lock_guard lock(state().mutex);
  state().ranks_are_threads = true;
}

void set_devices(int count) {
  const std::lock_guard lock(state().mutex);
  state().devices = count;
}

std::vector<std::string> calls() { return read(&State::calls); }
int count_of(const std::string& call) {
  const std::lock_guard lock(state().mutex);
  return state().counts[call];
}
int communicators() { return read(&State::communicators); }
int streams() { return read(&State::streams); }
int events() { return read(&State::events); }
std::size_t device_bytes() {
  std::size_t sum = 0;
  for (const auto& [begin, piece] : read(&State::memory)) sum += piece.bytes;
  return sum;
}

}  // namespace elasticrun::fake_gpu

// ---------------------------------------------------------------- libcuda.so.1

namespace {
constexpr int success = 0, invalid_value = 1, out_of_memory = 2, no_device = 100, not_ready = 600;
}

namespace {

void finish(CUstream_st* stream) {
  std::atomic<bool> reached = false;
  enqueue(stream, [&] { reached = true; });
  while (!reached) std::this_thread::yield();
}

// Waits for all work that was enqueued in this context.
void finish_all() {
  const std::lock_guard lock(current->mutex);
  finish(&current->by_default);
  for (CUstream_st* const stream : current->streams) finish(stream);
}

}  // namespace

extern "C" {

int cuInit(unsigned) { return read(&State::devices) > 0 ? success : no_device; }
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return success;
}
int cuDeviceGetCount(int* count) {
  *count = read(&State::devices);
  return success;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return success;
}
int cuDeviceGetName(char* name, int size, int) {
  std::snprintf(name, static_cast<std::size_t>(size), "a GPU of the tests");
  return success;
}
int cuDevicePrimaryCtxRetain(Context** context, int device) {
  static auto* const contexts = new std::deque<Context>;
  static std::mutex mutex;
  const bool apart = read(&State::ranks_are_threads);
  const std::lock_guard lock(mutex);
  const auto of_device = [&](const Context& one) { return one.ordinal == device; };
  const auto found = std::find_if(contexts->begin(), contexts->end(), of_device);
  *context = apart || found == contexts->end() ? &contexts->emplace_back(device) : &*found;
  return success;
}
int cuDevicePrimaryCtxRelease_v2(int) { return success; }
int cuCtxSetCurrent(Context* context) {
  current = context;
  return success;
}
int cuGetErrorString(int status, const char** text) {
  *text = status == no_device ? "no CUDA-capable device is detected" : "fake trouble";
  return success;
}

int cuMemAlloc_v2(unsigned long long* address, std::size_t bytes) {
  void* const memory = std::malloc(bytes);
  if (!memory) return out_of_memory;
  const std::lock_guard lock(state().mutex);
  *address = reinterpret_cast<std::uintptr_t>(memory);
  state().memory[*address] = {bytes, current ? current->ordinal : 0};
  return success;
}
int cuMemFree_v2(unsigned long long address) {
  finish_all();  // as the real one does
  const std::lock_guard lock(state().mutex);
  if (state().memory.erase(address) == 0) return invalid_value;
  std::free(reinterpret_cast<void*>(address));
  return success;
}
int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  *total = std::size_t{1} << 36;
  *free = *total - device_bytes();
  return success;
}
int cuMemcpyAsync(unsigned long long to, unsigned long long from, std::size_t bytes,
                  CUstream_st* stream) {
  enqueue(stream, [=] {
    std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  });
  return success;
}
int cuMemsetD8Async(unsigned long long to, unsigned char value, std::size_t bytes,
                    CUstream_st* stream) {
  enqueue(stream, [=] { std::memset(reinterpret_cast<void*>(to), value, bytes); });
  return success;
}
int cuPointerGetAttribute(void* value, int attribute, unsigned long long address) {
  constexpr int memory_type = 2, on_device = 2;
  const int ordinal = ordinal_of(address);
  if (ordinal < 0) return invalid_value;
  *static_cast<int*>(value) = attribute == memory_type ? on_device : ordinal;
  return success;
}

int cuStreamCreate(CUstream_st** stream, unsigned) {
  const std::lock_guard lock(current->mutex);
  *stream = *current->streams.insert(new CUstream_st(current->pending)).first;
  change(&State::streams, 1);
  return success;
}
int cuStreamDestroy_v2(CUstream_st* stream) {
  {
    const std::lock_guard lock(current->mutex);
    current->streams.erase(stream);
  }
  change(&State::streams, -1);
  delete stream;
  return success;
}
int cuStreamSynchronize(CUstream_st* stream) {
  finish(stream);
  return success;
}
int cuEventCreate(CUevent_st** event, unsigned) {
  *event = new CUevent_st;
  change(&State::events, 1);
  return success;
}
int cuEventDestroy_v2(CUevent_st* event) {
  change(&State::events, -1);
  delete event;
  return success;
}
int cuEventRecord(CUevent_st* event, CUstream_st* stream) {
  event->reached = std::make_shared<std::atomic<bool>>(false);
  enqueue(stream, [reached = event->reached] { *reached = true; });
  return success;
}
int cuEventSynchronize(CUevent_st* event) {
  while (!*event->reached) std::this_thread::yield();
  return success;
}
int cuStreamWaitEvent(CUstream_st* stream, CUevent_st* event, unsigned) {
  enqueue(stream, [reached = event->reached] {
    while (!*reached) std::this_thread::yield();
  });
  return success;
}
int cuEventQuery(CUevent_st* event) { return *event->reached ? success : not_ready; }

}  // extern "C"
