// The sums of one step (step.sum): names in the order of their first use, and values.
//
// Values ride on the step's reduction by place, so all workers must have the same table. It grows
// in compute, and its names become part of the progress at commit; a worker whose share was empty
// learns the new names of that step from the others (train_checks.cpp).
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

  // Begins a step: all values are 0, and only the committed names are known.
  void begin(const std::vector<std::string>& names) {
    if (names_ != names) names_ = names;
    values_.fill(0);
  }
  // Returns false for one name too many, and for a name that is empty or too long.
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
  // The value for this name; 0 when the name is unknown.
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
