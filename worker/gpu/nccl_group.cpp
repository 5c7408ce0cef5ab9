// Groups over NCCL, and the communicator that survives a group: when a world loses ranks, the
// communicator of the survivors is kept until the next world knows whether it can be shrunk.
//
// That decision needs no order from the controller: what each rank publishes includes the state of
// its communicator (nccl_path.hpp), so Group's interface is the same as for Gloo.
#include "worker/gpu/nccl_group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.hpp"
#include "worker/gpu/communicator_cache.hpp"
#include "worker/gpu/nccl_path.hpp"

namespace elasticrun::worker::gpu {
namespace {

// Host memory passes through a GPU buffer of at most this size (bytes), except for messages.
constexpr std::size_t staging_bytes_max = 32u << 20;

// Collectives have no time limit here: the controller finds hangs.
constexpr std::chrono::milliseconds no_limit = std::chrono::hours(100);

nccl::Type type_of(collective::DataType type) {
  switch (type) {
    case collective::DataType::float32:
      return nccl::float32;
    case collective::DataType::bfloat16:
      return nccl::bfloat16;
    case collective::DataType::float16:
      return nccl::float16;
    default:
      ER_CHECK(type == collective::DataType::float64, "integers are not summed");
      return nccl::float64;
  }
}

// A posted message; the group sends it together with the others.
struct Message {
  int peer = 0;
  bool sends = false;
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  bool done = false;
};

class NcclGroup final : public collective::Group {
 public:
  NcclGroup(std::shared_ptr<CommunicatorCache> cache, int rank, int size)
      : cache_(std::move(cache)),
        gpu_(*cache_->gpu()),
        rank_(rank),
        size_(size),
        communicator_(std::make_shared<Communicator>(cache_->gpu(), cache_->limits())),
        staging_(gpu_) {}
  ~NcclGroup() override { close(); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string publish() override;
  void connect(const std::vector<std::string>& published) override;
  std::string formation() const override { return formation_; }
  void abort() noexcept override { communicator_->halt(); }
  void close() noexcept override;
  void all_reduce(void* data, collective::DataType type, std::size_t count) override;
  void all_reduce_each(std::span<const Row> rows) override;
  void broadcast(void* data, std::size_t bytes, int root) override;
  void barrier() override;
  bool in_rounds() const override { return true; }
  std::unique_ptr<collective::Pending> post_send(int to, const void* data, std::size_t bytes,
                                                 std::uint32_t tag) override;
  std::unique_ptr<collective::Pending> post_recv(int from, void* data, std::size_t bytes,
                                                 std::uint32_t tag) override;

  // Called for a posted message: sends and receives all messages that are posted.
  void flush(const Message& message);
  void forget(const std::shared_ptr<Message>& message) { std::erase(posted_, message); }

 private:
  void form(const NcclPath& path, const std::vector<NcclOffer>& offers);
  void warm_up();
  void check_ready();
  std::vector<std::byte*> staged_places(const std::vector<std::shared_ptr<Message>>& batch);
  std::unique_ptr<collective::Pending> post(Message message);
  // Calls enqueue(item) for all items, as one NCCL group.
  template <class Items, class Enqueue>
  nccl::Status in_nccl_group(const Items& items, Enqueue&& enqueue) const;
  // Calls operation(memory on the GPU, bytes, communicator, stream); for host memory once per
  // piece.
  template <class Operation>
  void on_gpu(const char* what, void* data, std::size_t bytes, Operation&& operation);

  const std::shared_ptr<CommunicatorCache> cache_;
  Gpu& gpu_;
  const int rank_;
  const int size_;
  const std::shared_ptr<Communicator> communicator_;
  std::optional<nccl::UniqueId> acquired_;
  std::string formation_;
  bool connected_ = false;
  bool stepped_ = false;
  GpuBuffer staging_;
  std::vector<std::shared_ptr<Message>> posted_;
};

class NcclPending final : public collective::Pending {
 public:
  NcclPending(NcclGroup& group, std::shared_ptr<Message> message)
      : group_(group), message_(std::move(message)) {}
  ~NcclPending() override {
    if (!message_->done) group_.forget(message_);
  }
  void wait() override { group_.flush(*message_); }

 private:
  NcclGroup& group_;
  const std::shared_ptr<Message> message_;
};

// ---------------------------------------------------------------- forming and closing

std::string NcclGroup::publish() {
  if (const auto health = gpu_.health(); !health)
    throw collective::GroupBroken(health.error().text);
  NcclOffer offer{.version = gpu_.libraries().nccl_version,
                  .driver = gpu_.libraries().driver_version,
                  .host = gpu_.host()};
  if (const auto parent = cache_->parent()) {
    offer.parent = parent->health();
    offer.parent_id = parent->id();
    offer.parent_rank = parent->rank();
    offer.parent_size = parent->size();
  }
  if (lends_unique_id(rank_, size_, gpu_.features())) {
    gpu_.enter();
    acquired_ = cache_->acquire();
    offer.unique_id = to_hex(*acquired_);
  }
  return to_text(offer);
}

void NcclGroup::connect(const std::vector<std::string>& published) {
  ER_CHECK(!connected_ && published.size() == static_cast<std::size_t>(size_));
  std::vector<NcclOffer> offers;
  for (const std::string& text : published) {
    const Result<NcclOffer> offer = parse_offer(text);
    if (!offer) throw collective::GroupBroken(offer.error().text);
    offers.push_back(*offer);
  }
  const Result<NcclPath> path = choose_path(offers, gpu_.features());
  if (!path) throw collective::GroupBroken(path.error().text);
  formation_ = fmt::format("nccl {}: {}", name_of(path->init), path->reason);
  try {
    form(*path, offers);
  } catch (const collective::GroupBroken& error) {
    cache_->await_ended();  // the next one may need the memory
    throw collective::GroupBroken(fmt::format("{} ({}{}{})", error.what(), formation_,
                                              path->doubt.empty() ? "" : "; ", path->doubt));
  }
  connected_ = true;
}

void NcclGroup::form(const NcclPath& path, const std::vector<NcclOffer>& offers) {
  const bool shrinks = path.init == NcclInit::shrink;
  const auto parent = cache_->parent();
  if (shrinks) {
    if (acquired_) cache_->release(*acquired_);
    communicator_->shrink(*parent, path.excluded);
    cache_->discard(parent);
  } else {
    if (parent && parent->halted()) cache_->discard(parent);
    if (size_ == 1) return;
    std::vector<nccl::UniqueId> ids;
    for (int rank = 0; rank < size_; ++rank) {
      if (!lends_unique_id(rank, size_, gpu_.features())) continue;
      const auto id = unique_id_from(offers[static_cast<std::size_t>(rank)].unique_id);
      if (!id)
        throw collective::GroupBroken(fmt::format("rank {} lent no unique id of NCCL's", rank));
      ids.push_back(*id);
    }
    communicator_->init(rank_, size_, std::move(ids));
  }
  warm_up();
}

// The first collective of a communicator connects the ranks, which takes longer than the rest.
void NcclGroup::warm_up() {
  std::byte* const one = staging_.reserve(sizeof(float));
  GpuStream stream(gpu_);
  gpu_.check(gpu_.cuda().fill(reinterpret_cast<cuda::Address>(one), 0, sizeof(float), stream.get()),
             "cuMemsetD8Async");
  communicator_->run("warming up", stream.get(), cache_->limits().form, [&](nccl::Comm comm) {
    return gpu_.nccl().all_reduce(one, one, 1, nccl::float32, nccl::sum, comm, stream.get());
  });
}

// A communicator that was halted between two collectives stays in the cache: the next world may
// shrink it.
void NcclGroup::close() noexcept {
  staging_.clear();
  if (communicator_->halted() && cache_->parent() == communicator_) return;
  cache_->discard(communicator_);
}

// ---------------------------------------------------------------- collectives

void NcclGroup::check_ready() {
  if (communicator_->halted()) throw collective::GroupBroken("the group was aborted");
  ER_CHECK(connected_, "used before connect");
  if (stepped_ || size_ == 1) return;
  stepped_ = true;
  cache_->put(communicator_);
}

template <class Items, class Enqueue>
nccl::Status NcclGroup::in_nccl_group(const Items& items, Enqueue&& enqueue) const {
  gpu_.nccl().group_start();
  nccl::Status status = nccl::success;
  for (const auto& item : items) {
    status = enqueue(item);
    if (status == nccl::in_progress) status = nccl::success;
    if (status != nccl::success) break;
  }
  const nccl::Status ended = gpu_.nccl().group_end();
  return status == nccl::success ? ended : status;
}

template <class Operation>
void NcclGroup::on_gpu(const char* what, void* data, std::size_t bytes, Operation&& operation) {
  const cuda::Stream stream = gpu_.stream();
  // Copies from `from` first, if it is another place than `memory`. The copy is inside the
  // communicator's run, so nothing is enqueued for a group that has been aborted.
  const auto run = [&](std::byte* memory, const std::byte* from, std::size_t part) {
    communicator_->run(what, stream, no_limit, [&](nccl::Comm comm) {
      if (from != memory) gpu_.copy(memory, from, part, stream);
      return operation(memory, part, comm, stream);
    });
  };
  gpu_.enter();
  auto* const all = static_cast<std::byte*>(data);
  if (gpu_.holds(data)) return run(all, all, bytes);
  for (std::size_t at = 0; at < bytes; at += staging_bytes_max) {
    const std::size_t part = std::min(staging_bytes_max, bytes - at);
    std::byte* const staged = staging_.reserve(part);
    run(staged, all + at, part);
    gpu_.copy_and_wait(all + at, staged, part, stream);
  }
}

void NcclGroup::all_reduce(void* data, collective::DataType type, std::size_t count) {
  check_ready();
  if (size_ == 1 || count == 0) return;
  on_gpu("all-reduce", data, count * size_of(type),
         [&](std::byte* memory, std::size_t bytes, nccl::Comm comm, cuda::Stream stream) {
           return gpu_.nccl().all_reduce(memory, memory, bytes / collective::size_of(type),
                                         type_of(type), nccl::sum, comm, stream);
         });
}

// Rows on the GPU are reduced in one NCCL group: one wait, and fewer kernels than rows.
void NcclGroup::all_reduce_each(std::span<const Row> rows) {
  const auto elsewhere = [&](const Row& row) { return !gpu_.holds(row.data); };
  if (size_ == 1 || std::ranges::any_of(rows, elsewhere))
    return collective::Group::all_reduce_each(rows);
  check_ready();
  gpu_.enter();
  const cuda::Stream stream = gpu_.stream();
  communicator_->run("all-reduce", stream, no_limit, [&](nccl::Comm comm) {
    return in_nccl_group(rows, [&](const Row& row) {
      return gpu_.nccl().all_reduce(row.data, row.data, row.count, type_of(row.type), nccl::sum,
                                    comm, stream);
    });
  });
}

void NcclGroup::broadcast(void* data, std::size_t bytes, int root) {
  check_ready();
  ER_CHECK(root >= 0 && root < size_);
  if (size_ == 1 || bytes == 0) return;
  on_gpu("broadcast", data, bytes,
         [&](std::byte* memory, std::size_t part, nccl::Comm comm, cuda::Stream stream) {
           return gpu_.nccl().broadcast(memory, memory, part, nccl::int8, root, comm, stream);
         });
}

void NcclGroup::barrier() {
  float one = 0;
  all_reduce(&one, collective::DataType::float32, 1);
}

// ---------------------------------------------------------------- messages

std::unique_ptr<collective::Pending> NcclGroup::post(Message message) {
  check_ready();
  ER_CHECK(message.peer != rank_ && message.peer >= 0 && message.peer < size_);
  posted_.push_back(std::make_shared<Message>(message));
  return std::make_unique<NcclPending>(*this, posted_.back());
}

std::unique_ptr<collective::Pending> NcclGroup::post_send(int to, const void* data,
                                                          std::size_t bytes, std::uint32_t) {
  // A send only reads.
  return post({to, true, static_cast<std::byte*>(const_cast<void*>(data)), bytes});
}

std::unique_ptr<collective::Pending> NcclGroup::post_recv(int from, void* data, std::size_t bytes,
                                                          std::uint32_t) {
  return post({from, false, static_cast<std::byte*>(data), bytes});
}

void NcclGroup::flush(const Message& asked) {
  if (asked.done) return;
  check_ready();
  gpu_.enter();
  const std::vector<std::shared_ptr<Message>> batch = std::exchange(posted_, {});
  const cuda::Stream stream = gpu_.stream();
  const std::vector<std::byte*> places = staged_places(batch);
  communicator_->run("messages", stream, no_limit, [&](nccl::Comm comm) {
    const nccl::Functions& nccl = gpu_.nccl();
    for (std::size_t i = 0; i < batch.size(); ++i)
      if (batch[i]->sends && places[i] != batch[i]->data)
        gpu_.copy(places[i], batch[i]->data, batch[i]->bytes, stream);
    auto place = places.begin();
    return in_nccl_group(batch, [&](const std::shared_ptr<Message>& one) {
      const Message& m = *one;
      std::byte* const data = *place++;
      return m.sends ? nccl.send(data, m.bytes, nccl::int8, m.peer, comm, stream)
                     : nccl.receive(data, m.bytes, nccl::int8, m.peer, comm, stream);
    });
  });
  for (std::size_t i = 0; i < batch.size(); ++i) {
    Message& message = *batch[i];
    if (!message.sends && places[i] != message.data)
      gpu_.copy_and_wait(message.data, places[i], message.bytes, stream);
    message.done = true;
  }
}

// The address of each message on the GPU; messages in host memory get a place in the buffer.
std::vector<std::byte*> NcclGroup::staged_places(
    const std::vector<std::shared_ptr<Message>>& batch) {
  constexpr std::size_t alignment = 256;
  std::vector<std::byte*> places;
  std::size_t needed = 0;
  for (const auto& message : batch) {
    places.push_back(gpu_.holds(message->data) ? message->data : nullptr);
    if (!places.back()) needed += (message->bytes + alignment - 1) / alignment * alignment;
  }
  std::byte* next = needed > 0 ? staging_.reserve(needed) : nullptr;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (places[i]) continue;
    places[i] = next;
    next += (batch[i]->bytes + alignment - 1) / alignment * alignment;
  }
  return places;
}

class NcclPlane final : public collective::DataPlane {
 public:
  NcclPlane(std::shared_ptr<Gpu> gpu, const NcclLimits& limits)
      : cache_(std::make_shared<CommunicatorCache>(std::move(gpu), limits)) {}

  std::unique_ptr<collective::Group> create(const collective::GroupSpec& spec) override {
    ER_CHECK(spec.rank >= 0 && spec.rank < spec.size);
    return std::make_unique<NcclGroup>(cache_, spec.rank, spec.size);
  }

 private:
  const std::shared_ptr<CommunicatorCache> cache_;
};

}  // namespace

std::unique_ptr<collective::DataPlane> make_nccl_plane(std::shared_ptr<Gpu> gpu,
                                                       const NcclLimits& limits) {
  return std::make_unique<NcclPlane>(std::move(gpu), limits);
}

}  // namespace elasticrun::worker::gpu
