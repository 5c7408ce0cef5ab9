// See auto_plane.hpp.
#include "worker/api/auto_plane.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

namespace elasticrun::worker::api {
namespace {

// Separates the two halves of what a rank publishes; it occurs in neither half.
constexpr char between = '+';

// The half for one plane, by rank; empty for a rank that has published nothing for that plane.
std::vector<std::string> half(const std::vector<std::string>& published, bool second) {
  std::vector<std::string> parts;
  for (const std::string& text : published) {
    const std::size_t end = text.find(between);
    if (second)
      parts.push_back(end == text.npos ? "" : text.substr(end + 1));
    else
      parts.push_back(text.substr(0, end));
  }
  return parts;
}

class AutoGroup final : public collective::Group {
 public:
  AutoGroup(std::unique_ptr<collective::Group> gloo, std::unique_ptr<collective::Group> nccl,
            std::shared_ptr<const gpu::Gpu> gpu)
      : gloo_(std::move(gloo)), nccl_(std::move(nccl)), gpu_(std::move(gpu)) {}

  int rank() const override { return gloo_->rank(); }
  int size() const override { return gloo_->size(); }
  std::string publish() override {
    std::string text = gloo_->publish();
    if (nccl_) text += between + nccl_->publish();
    return text;
  }
  // Where NCCL is possible every rank needs all offers, to see whether all others can use it.
  std::vector<int> needs() const override { return nccl_ ? std::vector<int>{} : gloo_->needs(); }
  void connect(const std::vector<std::string>& published) override {
    const std::vector<std::string> offers = half(published, true);
    const bool all = nccl_ && std::ranges::none_of(offers, &std::string::empty);
    collective::Group* const chosen = all ? nccl_.get() : gloo_.get();
    chosen->connect(all ? offers : half(published, false));
    // Close the group that was not chosen, which would keep sockets open.
    if (all) gloo_->close();
    chosen_ = chosen;
  }
  std::string formation() const override { return chosen().formation(); }
  std::vector<int> waits_for() const override {
    collective::Group* const one = chosen_;
    return one ? one->waits_for() : gloo_->waits_for();
  }
  std::vector<collective::PeerTrouble> lost_links() const override { return gloo_->lost_links(); }
  int rejected() const override { return gloo_->rejected(); }
  void abort() noexcept override {
    gloo_->abort();
    if (nccl_) nccl_->abort();
  }
  void close() noexcept override {
    gloo_->close();
    if (nccl_) nccl_->close();
  }
  void all_reduce(void* data, collective::DataType type, std::size_t count) override {
    reachable(data, count * size_of(type),
              [&](void* memory) { chosen().all_reduce(memory, type, count); });
  }
  // In one call, as on a rank without a GPU: that says which messages are sent.
  void all_reduce_each(std::span<const Row> rows) override {
    if (!gpu_ || &chosen() == nccl_.get()) return chosen().all_reduce_each(rows);
    const auto room_for = [](const Row& row) { return (bytes_of(row) + 15) / 16 * 16; };
    std::vector<Row> reached(rows.begin(), rows.end());
    std::size_t bytes = 0;
    for (const Row& row : rows)
      if (gpu_->holds(row.data)) bytes += room_for(row);
    if (carried_.size() < bytes) carried_.resize(bytes);
    std::byte* next = carried_.data();
    for (Row& row : reached) {
      if (!gpu_->holds(row.data)) continue;
      carry(next, row.data, bytes_of(row));
      row.data = std::exchange(next, next + room_for(row));
    }
    gloo_->all_reduce_each(reached);
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (reached[i].data != rows[i].data) carry(rows[i].data, reached[i].data, bytes_of(rows[i]));
  }
  void all_reduce_from(RowSource& source) override {
    if (!gpu_ || &chosen() == nccl_.get()) return chosen().all_reduce_from(source);
    Group::all_reduce_from(source);
  }
  bool divides_freely() const override { return chosen().divides_freely(); }
  void broadcast(void* data, std::size_t bytes, int root) override {
    reachable(data, bytes, [&](void* memory) { chosen().broadcast(memory, bytes, root); });
  }
  void barrier() override { chosen().barrier(); }
  bool in_rounds() const override { return chosen().in_rounds(); }
  std::unique_ptr<collective::Pending> post_send(int to, const void* data, std::size_t bytes,
                                                 std::uint32_t tag) override {
    return chosen().post_send(to, data, bytes, tag);
  }
  std::unique_ptr<collective::Pending> post_recv(int from, void* data, std::size_t bytes,
                                                 std::uint32_t tag) override {
    return chosen().post_recv(from, data, bytes, tag);
  }

 private:
  collective::Group& chosen() const {
    if (collective::Group* const one = chosen_) return *one;
    throw collective::GroupBroken("used before it was connected");
  }

  // Calls operation(memory), where `memory` is the data, or a copy of it on the host when the
  // chosen group cannot reach the GPU.
  template <class Operation>
  void reachable(void* data, std::size_t bytes, Operation&& operation) {
    if (!gpu_ || &chosen() == nccl_.get() || !gpu_->holds(data)) return operation(data);
    if (carried_.size() < bytes) carried_.resize(bytes);
    carry(carried_.data(), data, bytes);
    operation(carried_.data());
    carry(data, carried_.data(), bytes);
  }
  void carry(void* to, const void* from, std::size_t bytes) {
    gpu_->enter();
    gpu_->copy_and_wait(to, from, bytes, gpu_->stream());
  }
  static std::size_t bytes_of(const Row& row) { return row.count * size_of(row.type); }

  const std::unique_ptr<collective::Group> gloo_, nccl_;
  const std::shared_ptr<const gpu::Gpu> gpu_;
  std::atomic<collective::Group*> chosen_{nullptr};
  std::vector<std::byte> carried_;  // copy on the host of data on the GPU
};

class AutoPlane final : public collective::DataPlane {
 public:
  AutoPlane(std::unique_ptr<collective::DataPlane> gloo,
            std::unique_ptr<collective::DataPlane> nccl, const std::shared_ptr<gpu::Gpu>* gpu)
      : gloo_(std::move(gloo)), nccl_(std::move(nccl)), gpu_(gpu) {}
  std::unique_ptr<collective::Group> create(const collective::GroupSpec& spec) override {
    return std::make_unique<AutoGroup>(gloo_->create(spec), nccl_ ? nccl_->create(spec) : nullptr,
                                       *gpu_);
  }

 private:
  const std::unique_ptr<collective::DataPlane> gloo_, nccl_;
  const std::shared_ptr<gpu::Gpu>* const gpu_;
};

}  // namespace

std::unique_ptr<collective::DataPlane> make_auto_plane(std::unique_ptr<collective::DataPlane> gloo,
                                                       std::unique_ptr<collective::DataPlane> nccl,
                                                       const std::shared_ptr<gpu::Gpu>* gpu) {
  return std::make_unique<AutoPlane>(std::move(gloo), std::move(nccl), gpu);
}

}  // namespace elasticrun::worker::api
