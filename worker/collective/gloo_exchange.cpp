// See gloo_exchange.hpp.
#include "worker/collective/gloo_exchange.hpp"

#include <algorithm>

namespace elasticrun::worker::collective {

GlooExchange::GlooExchange(const std::shared_ptr<gloo::Context>& mesh, std::span<double> numbers,
                           std::uint64_t slot)
    : rank_(static_cast<std::size_t>(mesh->rank)),
      numbers_(numbers),
      all_(static_cast<std::size_t>(mesh->size) * numbers.size()) {
  const std::size_t bytes = numbers.size_bytes();
  std::ranges::copy(numbers, all_.begin() + static_cast<std::ptrdiff_t>(rank_ * numbers.size()));
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(mesh->size); ++rank)
    parts_.push_back(mesh->createUnboundBuffer(&all_[rank * numbers.size()], bytes));
  for (std::size_t rank = 0; rank < parts_.size(); ++rank)
    if (rank != rank_) parts_[rank]->recv(static_cast<int>(rank), slot, 0, bytes);
  for (std::size_t rank = 0; rank < parts_.size(); ++rank)
    if (rank != rank_) parts_[rank_]->send(static_cast<int>(rank), slot, 0, bytes);
}

void GlooExchange::finish(std::chrono::milliseconds limit) {
  for (std::size_t rank = 0; rank < parts_.size(); ++rank)
    if (rank != rank_) parts_[rank]->waitRecv(limit);
  for (std::size_t rank = 1; rank < parts_.size(); ++rank) parts_[rank_]->waitSend(limit);
  std::ranges::fill(numbers_, 0.0);
  for (std::size_t i = 0; i < all_.size(); ++i) numbers_[i % numbers_.size()] += all_[i];
}

}  // namespace elasticrun::worker::collective
