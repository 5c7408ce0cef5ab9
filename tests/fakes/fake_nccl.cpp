// NCCL's half of the fake GPU. See fake_gpu.hpp.
//
// The ranks of a communicator meet in a file of shared memory named by the unique id, so they may
// be threads or processes. As with the real NCCL no rank notices the death of another one: its
// peers wait until they are aborted.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <utility>

#include "tests/fakes/fake_gpu_state.hpp"
#include "tests/fakes/fake_sums.hpp"

using namespace elasticrun::fake_gpu;

namespace {

enum Result {
  success = 0,
  internal_error = 3,
  invalid_argument = 4,
  invalid_usage = 5,
  remote_error = 6,
  in_progress = 7
};

struct Head {
  std::atomic<int> joined;
  std::atomic<std::uint64_t> arrived;
};
// One chunk on its way from one rank to another.
struct Box {
  std::atomic<std::uint64_t> written, read;
  char data[chunk_bytes];
};
struct Slot {
  char data[chunk_bytes];
};

// The shared memory of a communicator. Its initial state is all zeros, so no rank has to prepare
// it.
class Region {
 public:
  Region(const std::string& id, int size) : size_(static_cast<std::size_t>(size)) {
    path_ = "/dev/shm/fake-nccl-" + id;
    bytes_ = sizeof(Head) + size_ * sizeof(Slot) + size_ * size_ * sizeof(Box);
    const int file = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes_)) != 0) std::abort();
    memory_ =
        static_cast<char*>(::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    ::close(file);
    if (memory_ == MAP_FAILED) std::abort();
  }
  ~Region() {
    ::munmap(memory_, bytes_);
    forget();
  }
  void forget() { ::unlink(path_.c_str()); }
  Head& head() { return *reinterpret_cast<Head*>(memory_); }
  char* slot(std::size_t rank) { return memory_ + sizeof(Head) + rank * sizeof(Slot); }
  Box& box(int from, int to) {
    char* const boxes = memory_ + sizeof(Head) + size_ * sizeof(Slot);
    return reinterpret_cast<Box*>(
        boxes)[static_cast<std::size_t>(from) * size_ + static_cast<std::size_t>(to)];
  }

 private:
  const std::size_t size_;
  std::string path_;
  std::size_t bytes_ = 0;
  char* memory_ = nullptr;
};

void rest() { std::this_thread::sleep_for(std::chrono::microseconds(20)); }

}  // namespace

struct ncclComm {
  std::string id;
  int rank = 0;
  int size = 0;
  std::unique_ptr<Region> region;
  std::uint64_t rounds = 0;
  std::atomic<int> state{in_progress};
  std::atomic<bool> aborted{false};
  std::atomic<int> under_way{0};
  std::atomic<bool> late{false};
  std::thread background;  // of init or shrink

  ncclComm() { count_communicators(1); }
  ~ncclComm() { count_communicators(-1); }

  // Waits until all ranks have joined. False: aborted.
  bool join(const std::atomic<bool>& stop) {
    region = std::make_unique<Region>(id, size);
    ++region->head().joined;
    while (region->head().joined < size) {
      if (stop) return false;
      rest();
    }
    region->forget();
    return true;
  }
  bool barrier() {
    ++region->head().arrived;
    ++rounds;
    while (region->head().arrived < rounds * static_cast<std::uint64_t>(size)) {
      if (aborted) return false;
      rest();
    }
    return true;
  }
  void wait_for_work() const {
    while (under_way > 0) rest();
  }
  void run_in_background(std::function<void()> body) {
    if (background.joinable()) background.join();
    background = std::thread(std::move(body));
  }
};

namespace {

bool spread(ncclComm& comm, const char* from, char* to, std::size_t bytes, int root) {
  for (std::size_t at = 0; at < bytes; at += chunk_bytes) {
    const std::size_t n = std::min(chunk_bytes, bytes - at);
    char* const slot = comm.region->slot(static_cast<std::size_t>(root));
    if (comm.rank == root) std::memcpy(slot, from + at, n);
    if (!comm.barrier()) return false;
    if (comm.rank != root) std::memcpy(to + at, slot, n);
    if (!comm.barrier()) return false;
  }
  return true;
}

// A send or a receive within a group call.
struct Move {
  ncclComm* comm;
  CUstream_st* stream;
  bool sends;
  char* data;
  std::size_t bytes;
  int peer;
  std::size_t done = 0;

  bool step() {
    const int from = sends ? comm->rank : peer, to = sends ? peer : comm->rank;
    Box& box = comm->region->box(from, to);
    const bool full = box.written > box.read;
    if (sends == full) return false;
    const std::size_t n = std::min(chunk_bytes, bytes - done);
    if (sends) {
      std::memcpy(box.data, data + done, n);
      ++box.written;
    } else {
      std::memcpy(data + done, box.data, n);
      ++box.read;
    }
    done += n;
    return true;
  }
};

void progress(std::vector<Move>& moves) {
  for (;;) {
    bool all = true, any = false;
    for (std::size_t i = 0; i < moves.size(); ++i) {
      Move& move = moves[i];
      if (move.done == move.bytes) continue;
      all = false;
      // Messages to one peer keep their order.
      const bool first = std::none_of(
          moves.begin(), moves.begin() + static_cast<std::ptrdiff_t>(i), [&](const Move& other) {
            return other.sends == move.sends && other.peer == move.peer && other.done < other.bytes;
          });
      if (first) any = move.step() || any;
    }
    if (all || moves.front().comm->aborted) return;
    if (!any) rest();
  }
}

thread_local int group_depth = 0;
thread_local std::vector<Move> group_moves;

// Puts work of a communicator into a stream, with the trouble that is planned for this call.
int launch(const char* call, ncclComm* comm, CUstream_st* stream, std::function<void()> work) {
  if (comm->state != success) return invalid_usage;
  const auto trouble = note(call);
  if (trouble == Trouble::fail) return internal_error;
  ++comm->under_way;
  enqueue(stream, [=, others = work_of_others(stream)] {
    if (others() > 0) count_overlap();
    if (trouble == Trouble::late) {
      while (!comm->aborted) rest();
    } else if (trouble == Trouble::broken) {
      comm->state = remote_error;
    } else {
      work();
    }
    --comm->under_way;
  });
  return success;
}

std::string text_of(const char* id) { return std::string(id, strnlen(id, 64)); }

int begin_init(ncclComm** made, const std::string& id, int rank, int size, const char* call) {
  const auto trouble = note(call);
  if (trouble == Trouble::fail) return internal_error;
  auto* const comm = new ncclComm;
  comm->id = id;
  comm->rank = rank;
  comm->size = size;
  *made = comm;
  comm->run_in_background([comm, trouble] {
    while (trouble == Trouble::late && !comm->aborted) rest();
    const bool joined = !comm->aborted && comm->join(comm->aborted);
    comm->state = trouble == Trouble::broken ? remote_error : joined ? success : internal_error;
  });
  return in_progress;
}

}  // namespace

extern "C" {

struct ncclUniqueId {
  char internal[128];
};

int ncclGetVersion(int* version) {
  *version = nccl_version();
  return success;
}
const char* ncclGetErrorString(int) { return "fake error"; }
const char* ncclGetLastError(ncclComm*) { return "fake words"; }

int ncclGetUniqueId(ncclUniqueId* id) {
  if (note("ncclGetUniqueId") == Trouble::fail) return internal_error;
  std::random_device random;
  std::memset(id->internal, 0, sizeof id->internal);
  std::snprintf(id->internal, sizeof id->internal, "%08x%08x", random(), random());
  return success;
}

int ncclCommInitRankConfig(ncclComm** made, int size, ncclUniqueId id, int rank, const void*) {
  return begin_init(made, text_of(id.internal), rank, size, "ncclCommInitRankConfig");
}

int ncclCommGetAsyncError(ncclComm* comm, int* state) {
  *state = comm->state;
  return success;
}

int ncclCommAbort(ncclComm* comm) {
  const auto trouble = note("ncclCommAbort");
  comm->aborted = true;
  if (comm->background.joinable()) comm->background.join();
  comm->wait_for_work();
  if (trouble == Trouble::late) await_release();
  delete comm;
  return trouble == Trouble::fail ? internal_error : success;
}

#ifndef FAKE_NCCL_OLD

int ncclCommInitRankScalable(ncclComm** made, int size, int rank, int ids, const ncclUniqueId* id,
                             const void*) {
  // All ids together name the communicator: ranks with different ids do not meet.
  std::string all;
  for (int i = 0; i < ids; ++i) all += text_of(id[i].internal);
  return begin_init(made, all, rank, size, "ncclCommInitRankScalable");
}

int ncclCommShrink(ncclComm* parent, int* excluded, int count, ncclComm** made, const void*,
                   int flags) {
  const auto trouble = note("ncclCommShrink");
  if (trouble == Trouble::fail || parent->state != success) return internal_error;
  if (count < 1 || std::find(excluded, excluded + count, parent->rank) != excluded + count)
    return invalid_argument;
  if (flags || parent->under_way > 0) return invalid_usage;
  std::string id = parent->id;
  int rank = parent->rank;
  for (int i = 0; i < count; ++i) {
    id += "-" + std::to_string(excluded[i]);
    rank -= excluded[i] < parent->rank ? 1 : 0;
  }
  *made = nullptr;
  parent->state = in_progress;
  parent->run_in_background([=] {
    while (trouble == Trouble::late && !parent->aborted) rest();
    auto* const comm = new ncclComm;
    comm->id = id;
    comm->rank = rank;
    comm->size = parent->size - count;
    const bool joined =
        !parent->aborted && trouble != Trouble::broken && comm->join(parent->aborted);
    comm->state = success;
    if (joined)
      *made = comm;
    else
      delete comm;
    parent->state = joined ? success : remote_error;
  });
  return success;  // the real one returns this too, without asking its peers: parent->state counts
}

#endif

int ncclAllReduce(const void* from, void* to, std::size_t count, int type, int, ncclComm* comm,
                  CUstream_st* stream) {
  return launch("ncclAllReduce", comm, stream, [=] { sum_up(*comm, type, from, to, count); });
}

int ncclBroadcast(const void* from, void* to, std::size_t count, int, int root, ncclComm* comm,
                  CUstream_st* stream) {
  return launch("ncclBroadcast", comm, stream, [=] {
    spread(*comm, static_cast<const char*>(from), static_cast<char*>(to), count, root);
  });
}

int ncclGroupStart() {
  ++group_depth;
  return success;
}
int ncclGroupEnd() {
  if (--group_depth > 0 || group_moves.empty()) return success;
  auto moves = std::make_shared<std::vector<Move>>(std::exchange(group_moves, {}));
  const Move& first = moves->front();
  return launch("ncclGroupEnd", first.comm, first.stream, [moves] { progress(*moves); });
}
int ncclSend(const void* data, std::size_t count, int, int peer, ncclComm* comm,
             CUstream_st* stream) {
  ncclGroupStart();
  group_moves.push_back(
      {comm, stream, true, const_cast<char*>(static_cast<const char*>(data)), count, peer});
  return ncclGroupEnd();
}
int ncclRecv(void* data, std::size_t count, int, int peer, ncclComm* comm, CUstream_st* stream) {
  ncclGroupStart();
  group_moves.push_back({comm, stream, false, static_cast<char*>(data), count, peer});
  return ncclGroupEnd();
}

}  // extern "C"
