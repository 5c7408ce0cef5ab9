// See shrink.hpp.
#include "simulate/faults/shrink.hpp"

#include <functional>

#include "simulate/faults/cluster.hpp"
#include "simulate/faults/scene_text.hpp"

namespace elasticrun::simulate::faults {
namespace {

constexpr int dice_tried = 20;

class Shrinking {
 public:
  Shrinking(Scene scene, std::string rule) : best_(std::move(scene)), rule_(std::move(rule)) {}

  Scene run() {
    for (std::size_t size = 0; size != best_.faults.size() + 1;) {
      size = best_.faults.size() + 1;
      for (std::size_t count = best_.faults.size(); count > 0; count /= 2) without(count);
      simplify();
    }
    return best_;
  }

 private:
  // Removes `count` faults in a row wherever the rule still breaks without them.
  void without(std::size_t count) {
    for (std::size_t at = best_.faults.size(); at-- > 0;) {
      if (at + count > best_.faults.size()) continue;
      attempt([&](Scene& scene) {
        const auto first = scene.faults.begin() + static_cast<std::ptrdiff_t>(at);
        scene.faults.erase(first, first + static_cast<std::ptrdiff_t>(count));
      });
    }
  }

  void simplify() {
    attempt([](Scene& scene) { scene.interrupted = false; });
    attempt([](Scene& scene) { scene.controller_dies = false; });
    attempt([](Scene& scene) { scene.mixed = false; });
    attempt([](Scene& scene) { scene.gradients = 0; });
    attempt([](Scene& scene) { scene.epoch_end = {}; });
    attempt([](Scene& scene) { scene.epochs = 1; });
    attempt([](Scene& scene) { scene.train_calls = 1; });
    attempt([](Scene& scene) { scene.spec.spares = 0; });
    attempt([](Scene& scene) { scene.spec.slurm_shrink = {}; });
    attempt([](Scene& scene) { scene.spec.policy = "fixed"; });
    attempt([](Scene& scene) { scene.spec.limits.max = 0; });
    attempt([](Scene& scene) { scene.spec.limits.min = 1; });
    attempt([](Scene& scene) { scene.spec.start = 0; });
    attempt([](Scene& scene) { --scene.slots_per_host; });
    attempt([](Scene& scene) { --scene.hosts; });
  }

  void attempt(const std::function<void(Scene&)>& change) {
    Scene scene = best_;
    change(scene);
    if (scene.hosts < 1 || scene.slots_per_host < 1) return;
    if (scene_text(scene) == scene_text(best_)) return;
    for (int i = 0; i < dice_tried; ++i) {
      if (breaks(scene)) {
        best_ = scene;
        return;
      }
      scene.dice = mix(scene.seed + static_cast<std::uint64_t>(i) + 1) % 100'000;
    }
  }

  bool breaks(const Scene& scene) const {
    return Cluster(scene, nullptr).run().broken_rule == rule_;
  }

  Scene best_;
  const std::string rule_;
};

}  // namespace

Scene shrink(const Scene& scene, const std::string& rule) { return Shrinking(scene, rule).run(); }

}  // namespace elasticrun::simulate::faults
