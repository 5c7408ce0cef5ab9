// Progress as text: a version, the numbers, then each name with its length in front. Fractions are
// written so that they are read back to the last bit.
//
// JSON would need a parser in every program that links the library; raw structs would tie two
// workers to one compiler and byte order.
#include "worker/core/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/check.hpp"

namespace elasticrun::worker::core {
namespace {

constexpr std::string_view version = "2";
constexpr std::size_t max_names = 32;
constexpr std::size_t max_name = 256;

// Takes fields off the front of the text; after the first wrong field good() stays false.
class Reader {
 public:
  explicit Reader(std::string_view text) : left_(text) {}

  template <class Number>
  Number number() {
    Number value{};
    const char* const end = left_.data() + left_.size();
    const auto [stop, error] = std::from_chars(left_.data(), end, value);
    good_ = good_ && error == std::errc{} && stop != end && *stop == ' ';
    if (good_) left_.remove_prefix(static_cast<std::size_t>(stop - left_.data()) + 1);
    return good_ ? value : Number{};
  }
  std::string name() {
    const auto length = number<std::size_t>();
    good_ = good_ && length <= max_name && length < left_.size() && left_[length] == ' ';
    if (!good_) return {};
    std::string text(left_.substr(0, length));
    left_.remove_prefix(length + 1);
    return text;
  }
  bool good() const { return good_; }
  bool at_end() const { return good_ && left_.empty(); }

 private:
  std::string_view left_;
  bool good_ = true;
};

}  // namespace

Range step_range(const Progress& progress, std::int64_t global_batch, std::int64_t samples) {
  ER_CHECK(global_batch > 0 && progress.cursor >= 0 && progress.cursor < samples);
  return {progress.cursor, progress.cursor + std::min(global_batch, samples - progress.cursor)};
}

Progress Progress::after_end() const {
  Progress after = *this;
  after.cursor = 0;
  ++after.epoch;
  ++after.step;
  return after;
}

Progress Progress::next(std::int64_t global_batch, std::int64_t samples, bool end_is_step) const {
  Progress after = *this;
  after.cursor = step_range(*this, global_batch, samples).last;
  ++after.step;
  if (after.cursor == samples && !end_is_step) {
    after.cursor = 0;
    ++after.epoch;
  }
  return after;
}

std::string encode(const Progress& p) {
  ER_CHECK(p.sum_names.size() <= max_names);
  std::string text = fmt::format("{} {} {} {} {} {} {} {} ", version, p.train_call, p.epoch,
                                 p.cursor, p.step, p.base_batch, p.seed, p.sum_names.size());
  const NoiseScale& noise = p.noise;
  text += fmt::format("{} {} {} {} {} {} ", noise.square_sum, noise.variance_sum, noise.weight,
                      noise.steps, noise.biased ? 1 : 0, p.scale_invariant_steps);
  for (const std::string& name : p.sum_names) {
    ER_CHECK(name.size() <= max_name, "the name of a figure is too long");
    text += fmt::format("{} {} ", name.size(), name);
  }
  return text;
}

Result<Progress> decode_progress(std::string_view bytes) {
  Reader reader(bytes);
  const auto found = reader.number<std::uint32_t>();
  if (!reader.good() || fmt::to_string(found) != version)
    return Error{
        fmt::format("the progress of training is of a kind this library does not read ({} "
                    "bytes); run all workers with one version of the library",
                    bytes.size())};
  Progress p;
  p.train_call = reader.number<std::int64_t>();
  p.epoch = reader.number<std::int64_t>();
  p.cursor = reader.number<std::int64_t>();
  p.step = reader.number<std::int64_t>();
  p.base_batch = reader.number<std::int64_t>();
  p.seed = reader.number<std::uint64_t>();
  const auto names = reader.number<std::size_t>();
  NoiseScale& noise = p.noise;
  for (double* const x : {&noise.square_sum, &noise.variance_sum, &noise.weight})
    *x = reader.number<double>();
  noise.steps = reader.number<std::int64_t>();
  noise.biased = reader.number<int>() != 0;
  p.scale_invariant_steps = reader.number<double>();
  for (std::size_t k = 0; k < std::min(names, max_names); ++k) p.sum_names.push_back(reader.name());
  const bool in_range = p.train_call >= 0 && p.epoch >= 0 && p.cursor >= 0 && p.step >= 0 &&
                        p.base_batch >= 0 && names <= max_names && noise.steps >= 0;
  if (!reader.at_end() || !in_range)
    return Error{fmt::format("the progress of training is damaged ({} bytes)", bytes.size())};
  return p;
}

}  // namespace elasticrun::worker::core
