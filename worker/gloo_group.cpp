// One Gloo group per generation, formed with a single exchange.
//
// Gloo's own rendezvous asks a store about three times per peer. Here each rank opens one listening
// socket per peer, publishes all ports at once, and connects when it has the others' ports. What
// fails in one rank shuts its sockets down, so that the others learn of it in milliseconds, whether
// they are neighbours in the ring or not.
#include "worker/gloo_group.hpp"

#include <fmt/format.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/transport/tcp/address.h>
#include <netinet/in.h>

#include <atomic>
#include <charconv>
#include <map>
#include <mutex>

#include "base/check.hpp"
#include "worker/gloo_transport.hpp"

namespace elasticrun::worker {

namespace {

namespace transport = gloo_transport;
namespace tcp = gloo::transport::tcp;

// The controller finds hangs; Gloo only must not overflow when it adds this to a clock.
constexpr std::chrono::milliseconds no_limit = std::chrono::hours(100);
// Below it the number of messages in a row is what costs, and a hypercube has fewer than a ring.
constexpr std::size_t hypercube_bytes_max = 256u << 10;
// Apart from the tags of Gloo's collectives, whose first byte is small.
constexpr std::uint64_t message_slots = std::uint64_t{0x40} << 56;

// ---- addresses: "127.0.0.1/8f3a8f3b", the address and four hex digits for each peer in rank order

std::uint16_t port_of(const gloo::transport::Address& address) {
  const sockaddr_storage& storage = static_cast<const tcp::Address&>(address).getSockaddr();
  return ntohs(storage.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(storage).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(storage).sin_port);
}

// Where `publisher` waits for `reader`; empty when what it published makes no sense.
std::vector<char> address_for(const std::string& published, int publisher, int reader, int size) {
  const std::size_t slash = published.find('/');
  if (slash == std::string::npos) return {};
  if (published.size() - slash - 1 != 4 * static_cast<std::size_t>(size - 1)) return {};
  const int place = reader < publisher ? reader : reader - 1;
  const char* first = published.data() + slash + 1 + 4 * place;
  std::uint16_t port = 0;
  const auto parsed = std::from_chars(first, first + 4, port, 16);
  if (parsed.ptr != first + 4 || port == 0) return {};
  const auto address = transport::parse_address(published.substr(0, slash), port);
  return address ? tcp::Address(*address).bytes() : std::vector<char>{};
}

// Gloo's texts begin with "[source file:line] ".
std::string cleaned(const std::string& text) {
  const std::size_t end = text.starts_with('[') ? text.find("] ") : std::string::npos;
  return end == std::string::npos ? text : text.substr(end + 2);
}

class GlooPending final : public Pending {
 public:
  GlooPending(Group& group, std::unique_ptr<gloo::transport::UnboundBuffer> buffer, bool sends)
      : group_(group), buffer_(std::move(buffer)), sends_(sends) {}
  void wait() override {
    try {
      sends_ ? buffer_->waitSend(no_limit) : buffer_->waitRecv(no_limit);
    } catch (const std::exception& error) {
      group_.abort();
      throw GroupBroken("message failed: " + cleaned(error.what()));
    }
  }

 private:
  Group& group_;
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
  bool sends_;
};

class GlooGroup final : public Group {
 public:
  GlooGroup(std::shared_ptr<transport::Device> device, const GlooOptions& options, int rank,
            int size)
      : device_(std::move(device)), options_(options), rank_(rank), size_(size) {}
  ~GlooGroup() override { close(); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string publish() override;
  void connect(const std::vector<std::string>& published) override;
  std::string way() const override { return "gloo"; }
  void abort() noexcept override;
  void close() noexcept override;
  void all_reduce(void* data, DataType type, std::size_t count) override;
  void broadcast(void* data, std::size_t bytes, int root) override;
  void barrier() override;
  std::unique_ptr<Pending> post_send(int to, const void* data, std::size_t bytes,
                                     std::uint32_t tag) override;
  std::unique_ptr<Pending> post_recv(int from, void* data, std::size_t bytes,
                                     std::uint32_t tag) override;

 private:
  void connect_to(int peer, const std::string& published);
  void check_alive() const;
  void check_ready() const;
  // Runs one operation; whatever it throws ends the group.
  template <class Operation>
  void guarded(const char* what, Operation&& operation);

  const std::shared_ptr<transport::Device> device_;  // null in a world of one
  const GlooOptions options_;
  const int rank_;
  const int size_;
  std::atomic<bool> broken_{false};
  std::mutex mutex_;  // pairs are not made, aborted and closed at once
  std::shared_ptr<transport::Transport> transport_;  // from publish to close
  std::shared_ptr<gloo::Context> mesh_;              // from connect to close
};

std::string GlooGroup::publish() {
  if (size_ == 1) {
    check_alive();
    return "-";
  }
  std::string published = options_.address + "/";
  guarded("listening", [&] {
    const std::lock_guard lock(mutex_);
    check_alive();
    ER_CHECK(!transport_, "published twice");
    transport_ = std::make_shared<transport::Transport>(device_->gloo, rank_, size_);
    transport_->setTimeout(options_.connect_limit / 5);  // Gloo waits five times as long
    for (int peer = 0; peer < size_; ++peer)
      if (peer != rank_)
        published += fmt::format("{:04x}", port_of(transport_->createPair(peer)->address()));
  });
  return published;
}

void GlooGroup::connect(const std::vector<std::string>& published) {
  check_alive();
  if (size_ == 1) return;
  ER_CHECK(transport_ && !mesh_ && published.size() == static_cast<std::size_t>(size_));
  guarded("forming", [&] {
    const transport::Armed quick(device_->ticker);
    for (int peer = 0; peer < size_; ++peer)
      if (peer != rank_) connect_to(peer, published[static_cast<std::size_t>(peer)]);
    auto mesh = std::make_shared<transport::Mesh>(device_->gloo, transport_);
    mesh->setTimeout(no_limit);
    transport_->setTimeout(no_limit);
    const std::lock_guard lock(mutex_);
    mesh_ = std::move(mesh);
  });
}

void GlooGroup::connect_to(int peer, const std::string& published) {
  check_alive();
  const std::vector<char> address = address_for(published, peer, rank_, size_);
  if (address.empty())
    throw GroupBroken(fmt::format("rank {} published no address: '{:.80}'", peer, published));
  try {
    transport_->getPair(peer)->connect(address);
  } catch (const std::exception& error) {
    throw GroupBroken(fmt::format("no connection to rank {}: {}", peer, cleaned(error.what())));
  }
}

void GlooGroup::abort() noexcept {
  broken_ = true;
  const std::lock_guard lock(mutex_);
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
  ER_CHECK(size_ == 1 || mesh_, "used before connect");
}

template <class Operation>
void GlooGroup::guarded(const char* what, Operation&& operation) {
  const transport::NoSigpipe no_sigpipe;
  std::string why;
  try {
    operation();
    return;
  } catch (const std::exception& error) {
    why = broken_ ? "aborted" : cleaned(error.what());
  }
  abort();
  throw GroupBroken(fmt::format("{} with {} members: {}", what, size_, why));
}

void GlooGroup::all_reduce(void* data, DataType type, std::size_t count) {
  check_ready();
  if (size_ == 1 || count == 0) return;
  guarded("all-reduce", [&] {
    gloo::AllreduceOptions options(mesh_);
    const std::size_t bytes = count * size_of(type);
    if (type == DataType::float32) {
      options.setOutput(static_cast<float*>(data), count);
      options.setReduceFunction(
          static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
    } else {
      options.setOutput(static_cast<double*>(data), count);
      options.setReduceFunction(
          static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<double>));
    }
    using Algorithm = gloo::AllreduceOptions::Algorithm;
    options.setAlgorithm(bytes <= hypercube_bytes_max ? Algorithm::BCUBE : Algorithm::RING);
    options.setTimeout(no_limit);
    gloo::allreduce(options);
  });
}

void GlooGroup::broadcast(void* data, std::size_t bytes, int root) {
  check_ready();
  ER_CHECK(root >= 0 && root < size_);
  if (size_ == 1 || bytes == 0) return;
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
  if (size_ == 1) return;
  guarded("barrier", [&] {
    gloo::BarrierOptions options(mesh_);
    options.setTimeout(no_limit);
    gloo::barrier(options);
  });
}

std::unique_ptr<Pending> GlooGroup::post_send(int to, const void* data, std::size_t bytes,
                                              std::uint32_t tag) {
  check_ready();
  ER_CHECK(to != rank_ && to >= 0 && to < size_);
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer;
  guarded("send", [&] {
    // Gloo has one buffer type for both ways; a send only reads.
    buffer = mesh_->createUnboundBuffer(const_cast<void*>(data), bytes);
    buffer->send(to, message_slots | std::uint64_t{tag} << 24, 0, bytes);
  });
  return std::make_unique<GlooPending>(*this, std::move(buffer), true);
}

std::unique_ptr<Pending> GlooGroup::post_recv(int from, void* data, std::size_t bytes,
                                              std::uint32_t tag) {
  check_ready();
  ER_CHECK(from != rank_ && from >= 0 && from < size_);
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer;
  guarded("receive", [&] {
    buffer = mesh_->createUnboundBuffer(data, bytes);
    buffer->recv(from, message_slots | std::uint64_t{tag} << 24, 0, bytes);
  });
  return std::make_unique<GlooPending>(*this, std::move(buffer), false);
}

class GlooPlane final : public DataPlane {
 public:
  explicit GlooPlane(GlooOptions options) : options_(std::move(options)) {}
  std::unique_ptr<Group> create(int rank, int size, bool one_host) override;

 private:
  const GlooOptions options_;
  std::mutex mutex_;
  // By address, each made for the first world of more than one that meets there.
  std::map<std::string, std::shared_ptr<transport::Device>> devices_;
};

std::unique_ptr<Group> GlooPlane::create(int rank, int size, bool one_host) {
  ER_CHECK(rank >= 0 && rank < size);
  GlooOptions options = options_;
  if (one_host) options.address = "127.0.0.1";
  if (size == 1) return std::make_unique<GlooGroup>(nullptr, options, rank, size);
  const std::lock_guard lock(mutex_);
  auto& device = devices_[options.address];
  if (!device) device = std::make_shared<transport::Device>(options.address);
  return std::make_unique<GlooGroup>(device, options, rank, size);
}

}  // namespace

std::unique_ptr<DataPlane> make_gloo_plane(const GlooOptions& options) {
  return std::make_unique<GlooPlane>(options);
}

}  // namespace elasticrun::worker
