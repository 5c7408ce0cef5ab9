// See nccl_communicator.hpp.
#include "worker/gpu/nccl_communicator.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <system_error>
#include <thread>
#include <utility>

#include "base/check.hpp"
#include "base/quiet_thread.hpp"
#include "worker/collective/group.hpp"

namespace elasticrun::worker::gpu {
namespace {

using Clock = std::chrono::steady_clock;

// The meaning of a status, as text for the user.
const char* meaning(nccl::Status status) {
  switch (status) {
    case nccl::success:
      return "no error";
    case nccl::unhandled_cuda_error:
      return "a call of CUDA failed inside NCCL";
    case nccl::system_error:
      return "a call of the system failed inside NCCL";
    case nccl::internal_error:
      return "NCCL failed internally";
    case nccl::invalid_argument:
      return "NCCL refused an argument";
    case nccl::invalid_usage:
      return "NCCL refused how it is used";
    case nccl::remote_error:
      return "a peer is gone";
    case nccl::in_progress:
      return "the peers did not come in time";
  }
  return "an unknown error of NCCL";
}

}  // namespace

void Halt::set() noexcept {
  const std::lock_guard lock(mutex_);
  set_ = true;
  changed_.notify_all();
}

void Halt::rest(int& looks) const {
  constexpr int looks_without_rest = 300;
  if (++looks < looks_without_rest) return std::this_thread::yield();
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::microseconds(100));
}

void Communicator::init(int rank, int size, std::vector<nccl::UniqueId> ids) {
  ER_CHECK(!comm_ && !ids.empty());
  const std::lock_guard lock(in_use_);
  rank_ = rank;
  size_ = size;
  id_ = XXH3_64bits(ids.data(), ids.size() * sizeof ids[0]);
  begin();
  nccl::Config config;
  const nccl::Functions& nccl = gpu_->nccl();
  nccl::Status status = ids.size() == 1
                            ? nccl.init(&comm_, size, ids[0], rank, &config)
                            : nccl.init_scalable(&comm_, size, rank, static_cast<int>(ids.size()),
                                                 ids.data(), &config);
  status = settled(comm_, status, in(limits_.form));
  if (status != nccl::success) fail("forming", status);
}

// The new communicator appears when the parent has settled; until then it belongs to the parent.
void Communicator::shrink(Communicator& parent, std::vector<int> excluded) {
  ER_CHECK(!comm_ && parent.halted());
  const std::scoped_lock lock(in_use_, parent.in_use_);
  size_ = parent.size_ - static_cast<int>(excluded.size());
  rank_ = parent.rank_;
  for (const int gone : excluded) rank_ -= gone < parent.rank_ ? 1 : 0;
  id_ = XXH3_64bits_withSeed(excluded.data(), excluded.size() * sizeof excluded[0], parent.id_);
  begin();
  if (!parent.comm_) throw collective::GroupBroken("the communicator to shrink has been given up");
  nccl::Config config;
  nccl::Status status =
      gpu_->nccl().shrink(parent.comm_, excluded.data(), static_cast<int>(excluded.size()), &comm_,
                          &config, nccl::shrink_default);
  // NCCL 2.27 to 2.30 returns "success" at once, while the parent is still working: only polling it
  // shows the outcome.
  if (status == nccl::success) status = nccl::in_progress;
  const Deadline deadline = in(limits_.form);
  status = settled(parent.comm_, status, deadline);
  if (status == nccl::success && comm_) status = settled(comm_, status, deadline);
  parent.give_up();
  if (status == nccl::success && comm_) return;
  parent.await_abort();  // until then NCCL may write to comm_
  fail("shrinking", status);
}

void Communicator::begin() const {
  if (const auto health = gpu_->health(); !health)
    throw collective::GroupBroken(health.error().text);
  if (halted()) throw collective::GroupBroken("the group was aborted");
  gpu_->enter();
}

// Polls the status of `asked` until it is final; in_progress past the deadline, or when halted.
nccl::Status Communicator::settled(nccl::Comm asked, nccl::Status status, Deadline deadline) const {
  int looks = 0;
  while (status == nccl::in_progress && !halted() && Clock::now() < deadline) {
    halt_.rest(looks);
    if (gpu_->nccl().async_error(asked, &status) != nccl::success) return nccl::internal_error;
  }
  return status;
}

// A collective may be enqueued by a thread of NCCL's, so the event is recorded after the status is
// final.
void Communicator::finish(const char* what, cuda::Stream stream, nccl::Status status,
                          Deadline deadline) {
  GpuEvent behind(*gpu_);
  status = settled(comm_, status, deadline);
  if (status == nccl::success) {
    behind.record(stream);
    int looks = 0;
    bool reached = false;
    while (!reached && status == nccl::success && !halted()) {
      reached = behind.reached();
      if (!reached && Clock::now() > deadline) {
        status = nccl::in_progress;
        break;
      }
      if (gpu_->nccl().async_error(comm_, &status) != nccl::success) status = nccl::internal_error;
      if (!reached) halt_.rest(looks);
    }
    if (reached && status == nccl::success) return;
    stop(behind);
  }
  fail(what, status);
}

// Ends the work under way, and with it the communicator.
void Communicator::stop(GpuEvent& behind) noexcept {
  const Deadline deadline = in(limits_.stop);
  give_up();
  try {
    int looks = 0;
    while (!behind.reached()) {
      if (Clock::now() > deadline) {
        await_abort();
        return gpu_->lose("work of NCCL on the GPU did not end");
      }
      halt_.rest(looks);
    }
  } catch (const collective::GroupBroken&) {  // the GPU itself has failed
  }
}

// Unless stop() has seen the work end, threads of NCCL's may enqueue more of it until the abort has
// come back.
void Communicator::fail(const char* what, nccl::Status status) {
  std::string why = meaning(status);
  if (halted()) {
    why = "aborted";
  } else if (status != nccl::in_progress && status != nccl::remote_error) {
    const char* said = gpu_->nccl().last_error(nullptr);
    if (said && *said) why += fmt::format(" ({})", said);
  }
  halt_.set();
  if (comm_) {
    give_up();
    await_abort();
  }
  throw collective::GroupBroken(fmt::format("{} with {} members: {}", what, size_, why));
}

Communicator::~Communicator() {
  release();
  await_abort();
}

void Communicator::release() noexcept {
  halt_.set();
  const std::lock_guard lock(in_use_);
  give_up();
}

// The thread owns what it needs, so it may outlive this object when NCCL does not come back.
void Communicator::give_up() noexcept {
  if (!comm_) return;
  const auto promise = std::make_shared<std::promise<void>>();
  abort_ = promise->get_future();
  try {
    std::thread abort_thread = start_quiet_thread(
        "er-nccl-abort", [gpu = gpu_, comm = std::exchange(comm_, nullptr), promise] {
          gpu->cuda().set_context(gpu->context());
          gpu->nccl().abort(comm);
          promise->set_value();
        });
    abort_thread.detach();
  } catch (const std::system_error& error) {
    gpu_->lose(
        fmt::format("no thread to abort NCCL on {}: {}", gpu_->host(), error.code().message()));
  }
}

bool Communicator::ended() const noexcept {
  const std::lock_guard lock(in_use_);
  return !abort_.valid() || abort_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

void Communicator::await_abort() const noexcept {
  if (!abort_.valid() || abort_.wait_for(limits_.stop) == std::future_status::ready) return;
  gpu_->lose(
      fmt::format("NCCL on {} did not come back from an abort; this process can no longer form "
                  "a group",
                  gpu_->host()));
}

ParentHealth Communicator::health() const {
  if (!halted()) return ParentHealth::running;
  const std::lock_guard lock(in_use_);
  if (!comm_) return ParentHealth::none;
  return ParentHealth::quiet;
}

}  // namespace elasticrun::worker::gpu
