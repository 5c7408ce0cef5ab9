// See goodput.hpp.
#include "autoscaler/goodput.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace elasticrun::autoscaler {

namespace {

bool known(const Snapshot& snapshot) {
  return snapshot.noise && snapshot.noise->steps >= least_noise_steps && snapshot.base_batch > 0;
}

class Goodput final : public Objective {
 public:
  double worth(const Prospect& prospect, const Snapshot& snapshot,
               const Limits& limits) const override {
    const double plain = plain_->worth(prospect, snapshot, limits);
    if (!known(snapshot) || prospect.offer.global_batch == 0) return plain;
    return plain * efficiency(snapshot.noise->scale(), static_cast<double>(snapshot.base_batch),
                              static_cast<double>(prospect.offer.global_batch));
  }
  std::string sense(const Snapshot& snapshot, const Limits& limits) const override {
    const std::string plain = plain_->sense(snapshot, limits);
    if (!known(snapshot)) return plain + ", for the noise of the gradients is not known yet";
    const double scale = snapshot.noise->scale();
    if (std::isinf(scale)) return fmt::format("in goodput {} (nothing but noise is seen)", plain);
    return fmt::format("in goodput {} (noise scale {:.0f})", plain, scale);
  }
  bool chooses_batch() const override { return true; }
  // In steps of a factor of sqrt(2): no batch between two of them is 5 % better than both.
  std::vector<std::int64_t> batches(const Offer& offer, const Snapshot& snapshot) const override {
    const auto most = offer.global_batch;
    std::vector<std::int64_t> all{most};
    if (!known(snapshot)) return all;
    for (double batch = static_cast<double>(most) / std::numbers::sqrt2;
         std::llround(batch) >= std::max(snapshot.base_batch, std::int64_t{offer.size});
         batch /= std::numbers::sqrt2)
      all.push_back(std::llround(batch));
    return all;
  }

 private:
  std::unique_ptr<Objective> plain_ = scaling();
};

}  // namespace

std::unique_ptr<Objective> goodput() { return std::make_unique<Goodput>(); }

}  // namespace elasticrun::autoscaler
