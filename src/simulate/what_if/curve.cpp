// Reading a curve, and interpolating between its rows.
#include "simulate/what_if/curve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "autoscaler/noise.hpp"
#include "base/check.hpp"
#include "base/text.hpp"

namespace elasticrun::simulate::what_if {

namespace {

using Words = std::vector<std::string_view>;

// Parses a positive number, or with `zero` one that is not negative.
template <class T>
std::optional<T> number(std::string_view word, bool zero = false) {
  T value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return {};
  if (!std::isfinite(static_cast<double>(value)) || value < 0 || (value == 0 && !zero)) return {};
  return value;
}

constexpr int most_workers = 1'000'000;

}  // namespace

// Reads a curve line by line up to the first mistake.
class CurveReader {
 public:
  explicit CurveReader(std::string_view file) : file_(file) {}

  Result<Curve> read(std::string_view text) {
    while (!text.empty() && !mistake_) {
      ++line_;
      const auto end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      line = line.substr(0, line.find('#'));
      const auto colon = line.find(':');
      if (colon != line.npos) {
        const Words key = elasticrun::words(line.substr(0, colon));
        set(key.size() == 1 ? key[0] : "", line.substr(colon + 1));
      } else if (const Words words = elasticrun::words(line); !words.empty()) {
        row(words);
      }
    }
    if (!mistake_) finish();
    if (mistake_) return *mistake_;
    return curve_;
  }

 private:
  void fail(std::string what) { mistake_ = Error{fmt::format("{}:{}: {}", file_, line_, what)}; }

  template <class T>
  void one(const Words& words, T& value, std::string_view key) {
    const auto parsed = words.size() == 1 ? number<T>(words[0]) : std::nullopt;
    if (parsed)
      value = *parsed;
    else
      fail(fmt::format("{}: one positive number is expected", key));
  }

  void set(std::string_view key, std::string_view rest) {
    const Words words = elasticrun::words(rest);
    if (key == "title" && !words.empty())
      curve_.title_ = std::string(words.front().data(), words.back().data() + words.back().size());
    else if (key == "samples")
      one(words, curve_.samples_, key);
    else if (key == "batch")
      one(words, curve_.batch_, key);
    else if (key == "max-batch")
      one(words, curve_.max_batch_, key);
    else if (key == "base-batch")
      one(words, curve_.base_batch_, key);
    else if (key == "noise-scale")
      noise_scale(words);
    else if (key == "slots-per-host")
      one(words, curve_.slots_per_host_, key);
    else if (key == "columns")
      columns(words);
    else if (key == "law")
      law(words);
    else if (key == "sizes")
      sizes(words);
    else if (key == "hosts")
      hosts_[line_] = rest;
    else
      fail(
          fmt::format("'{}' is not known; use title, samples, batch, max-batch, base-batch, "
                      "noise-scale, slots-per-host, hosts, columns, law or sizes",
                      key));
  }

  void columns(const Words& words) {
    const bool rate = words.size() > 1 && words[1] == "samples/s";
    const bool total = words.size() > 1 && words[1] == "seconds";
    const bool tail = words.size() == 2 || (words.size() == 3 && words[2] == "compute");
    if (words.empty() || words[0] != "size" || !(rate || total) || !tail)
      return fail("columns: 'size seconds' or 'size samples/s', with 'compute' or without");
    width_ = words.size();
    total_ = total;
  }

  void law(const Words& words) {
    std::array<double, 6> coefficients{};
    if (words.size() != coefficients.size()) return fail("law: six numbers are expected");
    for (std::size_t i = 0; i < words.size(); ++i) {
      const auto value = number<double>(words[i], true);
      if (!value) return fail(fmt::format("law: '{}' is not a number of 0 or more", words[i]));
      coefficients[i] = *value;
    }
    if (!(coefficients[0] + coefficients[1] > 0)) return fail("law: compute takes some time");
    curve_.law_ = coefficients;
  }

  void noise_scale(const Words& words) {
    if (words.empty() || words.size() > 2) return fail("noise-scale: one or two are expected");
    for (const auto word : words) {
      const auto value = number<double>(word);
      if (!value) return fail(fmt::format("noise-scale: '{}' is not a positive number", word));
      curve_.noise_scale_.push_back(*value);
    }
  }

  void sizes(const Words& words) {
    for (const auto word : words) {
      const auto size = number<int>(word);
      if (!size || *size > most_workers)
        return fail(fmt::format("'{}' is not a number of workers", word));
      curve_.sizes_.push_back(*size);
    }
  }

  void row(const Words& words) {
    if (width_ == 0) return fail("name the columns before the first row");
    if (words.size() != width_) return fail(fmt::format("{} columns are expected", width_));
    const auto size = number<int>(words[0]);
    const auto value = number<double>(words[1]);
    const auto compute = width_ == 3 ? number<double>(words[2]) : std::optional<double>(0);
    if (!size || *size > most_workers || !value || !compute || *compute > 1)
      return fail("a size, a positive number, and a part of at most 1 are expected");
    if (total_ && !(curve_.samples_ > 0)) return fail("'samples:' is needed before seconds");
    const double rate = total_ ? curve_.samples_ / *value : *value;
    if (!curve_.rows_.emplace(*size, Curve::Row{rate, *compute}).second)
      fail(fmt::format("size {} again", *size));
  }

  void finish() {
    if (curve_.law_ && !curve_.rows_.empty()) return fail("rows and a law: only one of them");
    if (!curve_.law_ && curve_.rows_.empty()) return fail("neither rows nor a law");
    if (curve_.law_ && curve_.batch_ + curve_.max_batch_ == 0)
      return fail("a law needs 'batch:' or 'max-batch:'");
    if (curve_.law_ && curve_.sizes_.empty()) return fail("a law needs 'sizes:'");
    if (!(curve_.samples_ > 0)) return fail("'samples:' is missing");
    auto& sizes = curve_.sizes_;
    if (sizes.empty())
      for (const auto& [size, row] : curve_.rows_) sizes.push_back(size);
    std::ranges::sort(sizes);
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    if (!curve_.noise_scale_.empty()) noise();
    if (hosts_.empty()) return curve_.add_hosts(sizes.back());
    hosts();
    const int slots = curve_.slots();
    if (!mistake_ && slots < sizes.back())
      fail(fmt::format("the hosts have {} slots, and {} is one of the sizes", slots, sizes.back()));
  }

  void noise() {
    if (curve_.batch_ + curve_.max_batch_ == 0)
      return fail("noise-scale needs 'batch:' or 'max-batch:'");
    const bool known =
        std::ranges::all_of(curve_.rows_, [](const auto& row) { return row.second.compute > 0; });
    if (!known) return fail("noise-scale needs the column 'compute', or a law");
    if (curve_.base_batch_ == 0) curve_.base_batch_ = curve_.global_batch(curve_.sizes_.front());
  }

  // Parses all `hosts:` lines as one host file in which they keep their line numbers.
  void hosts() {
    std::string text;
    for (int line = 1; line <= hosts_.rbegin()->first; ++line)
      text += fmt::format("{}\n", hosts_.contains(line) ? hosts_.at(line) : "");
    auto parsed = launcher::hosts::parse_hosts(text, file_);
    if (!parsed) {
      mistake_ = parsed.error();
      return;
    }
    for (launcher::hosts::Host& host : *parsed) host.slots = std::max(host.slots, 1);
    curve_.hosts_ = std::move(*parsed);
    curve_.described_ = true;
  }

  std::string_view file_;
  int line_ = 0;
  std::optional<Error> mistake_;
  std::size_t width_ = 0;
  bool total_ = false;
  std::map<int, std::string_view> hosts_;  // `hosts:` entries by line number
  Curve curve_;
};

void Curve::add_hosts(int slots) {
  if (described_) return;
  for (int have = this->slots(); have < slots; have += slots_per_host_) {
    launcher::hosts::Host host;
    host.name = fmt::format("host{}", hosts_.size() + 1);
    host.slots = slots_per_host_;
    hosts_.push_back(std::move(host));
  }
}

int Curve::slots() const {
  int slots = 0;
  for (const launcher::hosts::Host& host : hosts_) slots += host.slots;
  return slots;
}

int Curve::hosts_of(int size) const {
  int hosts = 0;
  for (int slots = 0; slots < size && hosts < std::ssize(hosts_); ++hosts)
    slots += hosts_[static_cast<std::size_t>(hosts)].slots;
  return hosts;
}

Result<Curve> Curve::parse(std::string_view text, std::string_view file) {
  return CurveReader(file).read(text);
}

std::int64_t Curve::global_batch(int size) const {
  return autoscaler::plan(batch(), size, {}).global_batch;
}

Curve::Row Curve::by_law(int size, std::int64_t global_batch) const {
  const auto& [a_g, b_g, a_l, b_l, a_n, b_n] = *law_;
  const auto batch = static_cast<double>(global_batch);
  const double compute = a_g + b_g * batch / size;
  const double more = size - 2;
  const bool across = size > hosts_.front().slots;
  const double sync = size < 2 ? 0 : across ? a_n + b_n * more : a_l + b_l * more;
  return {batch / (compute + sync), compute / (compute + sync)};
}

Curve::Row Curve::at(int size) const {
  ER_CHECK(size > 0);
  if (law_) return by_law(size, global_batch(size));
  const auto high = rows_.lower_bound(size);
  if (high == rows_.end()) return rows_.rbegin()->second;
  if (high->first == size) return high->second;
  if (high == rows_.begin())
    return {high->second.samples_per_s * size / high->first, high->second.compute};
  const auto low = std::prev(high);
  const double part = std::log(static_cast<double>(size) / low->first) /
                      std::log(static_cast<double>(high->first) / low->first);
  const double ratio = high->second.samples_per_s / low->second.samples_per_s;
  return {low->second.samples_per_s * std::pow(ratio, part),
          low->second.compute + (high->second.compute - low->second.compute) * part};
}

Curve::Row Curve::at(int size, std::int64_t batch) const {
  const std::int64_t usual = global_batch(size);
  if (batch == 0 || batch == usual) return at(size);
  if (law_) return by_law(size, batch);
  const Row row = at(size);
  const double step = static_cast<double>(usual) / row.samples_per_s;
  const double compute =
      step * row.compute * static_cast<double>(batch) / static_cast<double>(usual);
  const double whole = compute + step * (1 - row.compute);
  return {static_cast<double>(batch) / whole, compute / whole};
}

double Curve::samples_per_s(int size, std::int64_t batch) const {
  return at(size, batch).samples_per_s;
}
double Curve::compute_share(int size, std::int64_t batch) const { return at(size, batch).compute; }

std::optional<double> Curve::noise_scale(double progress) const {
  if (noise_scale_.empty()) return {};
  const double ratio = noise_scale_.back() / noise_scale_.front();
  return noise_scale_.front() * std::pow(ratio, progress);
}

double Curve::worth_of_a_sample(std::int64_t batch, double progress) const {
  const auto scale = noise_scale(progress);
  if (!scale) return 1;
  return autoscaler::efficiency(*scale, static_cast<double>(base_batch_),
                                static_cast<double>(batch));
}

}  // namespace elasticrun::simulate::what_if
