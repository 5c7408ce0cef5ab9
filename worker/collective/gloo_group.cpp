// One Gloo group per generation, formed with a single exchange.
//
// Gloo's own rendezvous asks a store about three times per peer. Here each rank publishes where it
// listens, connects when it has the others' addresses, and hands Gloo the connections. A rank on
// which an operation fails shuts its sockets down, so that the others learn of it in milliseconds,
// whether they are its neighbours in the ring or not.
//
// In a large world a rank is connected to few others (neighbours.hpp). Gloo's collectives then use
// only these distances around the circle of all ranks: its ring 1, its broadcast (a binomial tree)
// and its barrier (by dissemination) powers of two. Its hypercube uses others: instead of it we sum
// by recursive doubling.
#include "worker/collective/gloo_group.hpp"

#include <fmt/format.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <map>
#include <mutex>
#include <utility>

#include "base/check.hpp"
#include "worker/collective/gloo_exchange.hpp"
#include "worker/collective/gloo_sums.hpp"
#include "worker/collective/gloo_transport.hpp"
#include "worker/collective/in_float.hpp"
#include "worker/collective/peer_connector.hpp"

namespace elasticrun::worker::collective {

namespace {

namespace transport = gloo_transport;
using transport::cleaned;

// Up to this size the number of messages in a row decides the cost, and a hypercube has fewer than
// a ring.
constexpr std::size_t hypercube_bytes_max = 256u << 10;
// Up to this size a round less between two ranks is worth that each adds all numbers, and not half.
constexpr std::size_t between_two_bytes_max = 2u << 20;
// Slots that do not collide with the tags of Gloo's collectives, whose first byte is small.
constexpr std::uint64_t message_slots = std::uint64_t{0x40} << 56;
constexpr std::uint64_t exchange_slot = std::uint64_t{0x42} << 56;

class GivenRows final : public Group::RowSource {
 public:
  explicit GivenRows(std::span<const Group::Row> rows) : rows_(rows) {}
  std::span<const Group::Row> next() override { return std::exchange(rows_, {}); }
  void summed() override {}

 private:
  std::span<const Group::Row> rows_;
};

class GlooGroup final : public Group {
 public:
  GlooGroup(std::shared_ptr<transport::Device> device, std::string address, GroupSpec spec)
      : device_(std::move(device)), address_(std::move(address)), spec_(std::move(spec)) {}
  ~GlooGroup() override { close(); }

  int rank() const override { return spec_.rank; }
  int size() const override { return spec_.size; }
  std::string publish() override;
  std::vector<int> needs() const override { return spec_.neighbours; }
  void connect(const std::vector<std::string>& published) override;
  std::string formation() const override { return "gloo"; }
  std::vector<int> waits_for() const override;
  std::vector<PeerTrouble> lost_links() const override;
  int rejected() const override;
  void abort() noexcept override;
  void close() noexcept override;
  void all_reduce(void* data, DataType type, std::size_t count) override;
  void all_reduce_each(std::span<const Row> rows) override;
  void all_reduce_from(RowSource& source) override;
  bool divides_freely() const override { return spec_.size == 2; }
  void broadcast(void* data, std::size_t bytes, int root) override;
  void barrier() override;
  std::unique_ptr<Pending> post_send(int to, const void* data, std::size_t bytes,
                                     std::uint32_t tag) override;
  std::unique_ptr<Pending> post_recv(int from, void* data, std::size_t bytes,
                                     std::uint32_t tag) override;
  // Calls wait(), which is Gloo's wait for a message with this peer.
  template <class Wait>
  void await_message(int peer, Wait&& wait);

 private:
  void check_alive() const;
  void check_ready() const;
  bool goes_between_two(std::size_t bytes) const {
    return spec_.size == 2 && bytes <= between_two_bytes_max;
  }
  bool is_sparse() const { return !spec_.neighbours.empty(); }
  bool is_connected_to(int peer) const;
  void reduce_rows(RowSource& source);
  // Runs one operation; any exception from it aborts the group and becomes GroupBroken.
  template <class Operation>
  void guarded(const std::string& what, Operation&& operation);

  const std::shared_ptr<transport::Device> device_;  // null in a world of one
  const std::string address_;
  const GroupSpec spec_;
  std::atomic<bool> broken_{false};
  std::atomic<int> message_peer_{-1};  // peer of the message that is waited for; -1: none
  GlooSums sums_;
  std::vector<float> wide_;  // numbers of 16 bits, to be summed
  // Held so that pairs are not made, aborted and closed at the same time.
  mutable std::mutex mutex_;
  std::unique_ptr<PeerConnector> connector_;         // set by publish
  std::shared_ptr<transport::Transport> transport_;  // set from connect to close
  std::shared_ptr<gloo::Context> mesh_;              // set from connect to close
};

class GlooPending final : public Pending {
 public:
  GlooPending(GlooGroup& group, std::unique_ptr<gloo::transport::UnboundBuffer> buffer, int peer,
              bool sends)
      : group_(group), buffer_(std::move(buffer)), peer_(peer), sends_(sends) {}
  void wait() override {
    group_.await_message(
        peer_, [this] { sends_ ? buffer_->waitSend(no_limit) : buffer_->waitRecv(no_limit); });
  }

 private:
  GlooGroup& group_;
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
  int peer_;
  bool sends_;
};

std::string GlooGroup::publish() {
  check_alive();
  if (spec_.size == 1) return "-";
  const std::lock_guard lock(mutex_);
  ER_CHECK(!connector_, "published twice");
  connector_ = std::make_unique<PeerConnector>(spec_, address_);
  return connector_->published();
}

void GlooGroup::connect(const std::vector<std::string>& published) {
  check_alive();
  if (spec_.size == 1) return;
  ER_CHECK(connector_ && !mesh_ && published.size() == static_cast<std::size_t>(spec_.size));
  guarded("forming", [&] {
    std::vector<net::Fd> sockets = connector_->connect(published);
    const auto transport =
        std::make_shared<transport::Transport>(device_->gloo, spec_.rank, spec_.size);
    transport->setTimeout(no_limit);
    const std::lock_guard lock(mutex_);
    check_alive();
    transport_ = transport;
    for (int peer = 0; peer < spec_.size; ++peer)
      if (is_connected_to(peer))
        transport_->adopt(peer, std::move(sockets[static_cast<std::size_t>(peer)]));
    mesh_ = std::make_shared<transport::Mesh>(device_->gloo, transport_);
    mesh_->setTimeout(no_limit);
  });
}

std::vector<int> GlooGroup::waits_for() const {
  {
    const std::lock_guard lock(mutex_);
    if (connector_ && !transport_) return connector_->missing();
  }
  const int peer = message_peer_;
  return peer < 0 ? std::vector<int>{} : std::vector{peer};
}

std::vector<PeerTrouble> GlooGroup::lost_links() const {
  const std::lock_guard lock(mutex_);
  return transport_ ? transport_->lost_links() : std::vector<PeerTrouble>{};
}

int GlooGroup::rejected() const {
  const std::lock_guard lock(mutex_);
  return connector_ ? connector_->rejected() : 0;
}

void GlooGroup::abort() noexcept {
  broken_ = true;
  const std::lock_guard lock(mutex_);
  if (connector_) connector_->abort();
  if (transport_) transport_->abort();
}

void GlooGroup::close() noexcept {
  std::shared_ptr<transport::Transport> transport;
  std::shared_ptr<gloo::Context> mesh;
  {
    const std::lock_guard lock(mutex_);
    broken_ = true;
    transport = std::move(transport_);
    mesh = std::move(mesh_);
  }
  if (!transport) return;
  const transport::Armed quick(device_->ticker);
  mesh.reset();
  transport.reset();
}

void GlooGroup::check_alive() const {
  if (broken_) throw GroupBroken("the group was aborted");
}

void GlooGroup::check_ready() const {
  check_alive();
  ER_CHECK(spec_.size == 1 || mesh_, "used before connect");
}

bool GlooGroup::is_connected_to(int peer) const {
  return peer != spec_.rank && peer >= 0 && peer < spec_.size &&
         (!is_sparse() || std::ranges::binary_search(spec_.neighbours, peer));
}

template <class Operation>
void GlooGroup::guarded(const std::string& what, Operation&& operation) {
  const transport::NoSigpipe no_sigpipe;
  std::string why;
  std::vector<PeerTrouble> troubles;
  try {
    operation();
    return;
  } catch (const GroupBroken& error) {
    why = error.what();
    troubles = error.troubles;
  } catch (const std::exception& error) {
    why = cleaned(error.what());
  }
  const bool ended_here = broken_;
  // Read before our own abort closes the remaining connections.
  if (transport_ && troubles.empty()) troubles = transport_->troubles();
  if (ended_here && troubles.empty()) why = "aborted";
  abort();
  throw GroupBroken(fmt::format("{} with {} members: {}", what, spec_.size, why), troubles);
}

template <class Wait>
void GlooGroup::await_message(int peer, Wait&& wait) {
  message_peer_ = peer;
  guarded(fmt::format("message between ranks {} and {}", spec_.rank, peer), wait);
  message_peer_ = -1;
}

void GlooGroup::all_reduce(void* data, DataType type, std::size_t count) {
  check_ready();
  if (spec_.size == 1 || count == 0) return;
  if (has_16_bits(type))
    return in_float({data, type, count}, wide_, [&](Row wide) { all_reduce_each({&wide, 1}); });
  ER_CHECK(!is_integer(type), "integers are not summed");
  const std::size_t bytes = count * size_of(type);
  if (const Row row{data, type, count}; goes_between_two(bytes)) {
    GivenRows rows({&row, 1});
    return reduce_rows(rows);
  }
  guarded("all-reduce", [&] {
    if (is_sparse() && bytes <= hypercube_bytes_max)
      return sums_.by_doubling(mesh_, data, type, count);
    gloo::AllreduceOptions options(mesh_);
    if (type == DataType::float32)
      options.setOutput(static_cast<float*>(data), count);
    else
      options.setOutput(static_cast<double*>(data), count);
    options.setReduceFunction(sum_of(type));
    using Algorithm = gloo::AllreduceOptions::Algorithm;
    options.setAlgorithm(bytes <= hypercube_bytes_max ? Algorithm::BCUBE : Algorithm::RING);
    options.setTimeout(no_limit);
    gloo::allreduce(options);
  });
}

// Rows between two are sent without waiting for each other; the messages are those of one row after
// the other.
void GlooGroup::reduce_rows(RowSource& source) {
  RowFeed rows(source);
  for (;;) {
    if (spec_.size == 2)
      guarded("all-reduce", [&] { sums_.between_two(mesh_, rows, between_two_bytes_max); });
    if (!rows.peek()) return;
    const Row row = rows.take();
    all_reduce(row.data, row.type, row.count);
    rows.summed();
  }
}

void GlooGroup::all_reduce_from(RowSource& source) {
  check_ready();
  if (!divides_freely()) return Group::all_reduce_from(source);
  reduce_rows(source);
}

void GlooGroup::all_reduce_each(std::span<const Row> rows) {
  check_ready();
  if (spec_.size == 1 || rows.empty()) return;
  const Row& last = rows.back();
  const bool exchanged = last.beside && !is_sparse() && spec_.size <= GlooExchange::ranks_max &&
                         last.type == DataType::float64 && last.count <= GlooExchange::numbers_max;
  GivenRows given(exchanged ? rows.first(rows.size() - 1) : rows);
  if (!exchanged) return reduce_rows(given);
  std::unique_ptr<GlooExchange> exchange;
  guarded("all-reduce", [&] {
    exchange = std::make_unique<GlooExchange>(
        mesh_, std::span(static_cast<double*>(last.data), last.count), exchange_slot);
  });
  reduce_rows(given);
  guarded("all-reduce", [&] { exchange->finish(no_limit); });
}

void GlooGroup::broadcast(void* data, std::size_t bytes, int root) {
  check_ready();
  ER_CHECK(root >= 0 && root < spec_.size);
  if (spec_.size == 1 || bytes == 0) return;
  guarded("broadcast", [&] {
    gloo::BroadcastOptions options(mesh_);
    options.setOutput(static_cast<char*>(data), bytes);
    options.setRoot(root);
    options.setTimeout(no_limit);
    gloo::broadcast(options);
  });
}

void GlooGroup::barrier() {
  check_ready();
  if (spec_.size == 1) return;
  guarded("barrier", [&] {
    gloo::BarrierOptions options(mesh_);
    options.setTimeout(no_limit);
    gloo::barrier(options);
  });
}

std::unique_ptr<Pending> GlooGroup::post_send(int to, const void* data, std::size_t bytes,
                                              std::uint32_t tag) {
  check_ready();
  ER_CHECK(is_connected_to(to));
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer;
  guarded("send", [&] {
    // Gloo has one buffer type for sending and receiving; a send only reads.
    buffer = mesh_->createUnboundBuffer(const_cast<void*>(data), bytes);
    buffer->send(to, message_slots | std::uint64_t{tag} << 24, 0, bytes);
  });
  return std::make_unique<GlooPending>(*this, std::move(buffer), to, true);
}

std::unique_ptr<Pending> GlooGroup::post_recv(int from, void* data, std::size_t bytes,
                                              std::uint32_t tag) {
  check_ready();
  ER_CHECK(is_connected_to(from));
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer;
  guarded("receive", [&] {
    buffer = mesh_->createUnboundBuffer(data, bytes);
    buffer->recv(from, message_slots | std::uint64_t{tag} << 24, 0, bytes);
  });
  return std::make_unique<GlooPending>(*this, std::move(buffer), from, false);
}

class GlooPlane final : public DataPlane {
 public:
  explicit GlooPlane(GlooOptions options) : options_(std::move(options)) {}
  std::unique_ptr<Group> create(const GroupSpec& spec) override;

 private:
  const GlooOptions options_;
  std::mutex mutex_;
  // By address; each device is made for the first world of more than one rank that uses the
  // address.
  std::map<std::string, std::shared_ptr<transport::Device>> devices_;
};

std::unique_ptr<Group> GlooPlane::create(const GroupSpec& spec) {
  ER_CHECK(spec.rank >= 0 && spec.rank < spec.size);
  const std::string address = spec.one_host ? "127.0.0.1" : options_.address;
  if (spec.size == 1) return std::make_unique<GlooGroup>(nullptr, address, spec);
  const std::lock_guard lock(mutex_);
  auto& device = devices_[address];
  if (!device) device = std::make_shared<transport::Device>(address);
  return std::make_unique<GlooGroup>(device, address, spec);
}

}  // namespace

std::unique_ptr<DataPlane> make_gloo_plane(const GlooOptions& options) {
  return std::make_unique<GlooPlane>(options);
}

}  // namespace elasticrun::worker::collective
