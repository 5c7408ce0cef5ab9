// The figures of one step (step.sum): names in the order of their first use, and values.
//
// Values ride on the step's reduction by place, so all workers must come to the same table. It
// grows in compute, and its names become part of the progress at commit; a worker whose share was
// empty learns the new names of that step from the others (train_loop.cpp).
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace elasticrun::worker::training {

class Sums {
 public:
  static constexpr std::size_t max_names = 32;
  static constexpr std::size_t max_name = 256;

  // A new step: no values, and the committed names only.
  void begin(const std::vector<std::string>& names) {
    if (names_ != names) names_ = names;
    values_.fill(0);
  }
  // False: one name too many, or no good name.
  bool add(std::string_view name, double x) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    const auto place = static_cast<std::size_t>(found - names_.begin());
    if (found == names_.end()) {
      if (names_.size() == max_names || name.empty() || name.size() > max_name) return false;
      names_.emplace_back(name);
    }
    values_[place] += x;
    return true;
  }
  // 0 when nobody has added to it.
  double total(std::string_view name) const {
    const auto found = std::find(names_.begin(), names_.end(), name);
    return found == names_.end() ? 0 : values_[static_cast<std::size_t>(found - names_.begin())];
  }

  std::vector<std::string>& names() { return names_; }
  std::array<double, max_names>& values() { return values_; }

 private:
  std::vector<std::string> names_;
  std::array<double, max_names> values_{};
};

}  // namespace elasticrun::worker::training
