// See write_queue.hpp.
#include "cli/run/write_queue.hpp"

#include <algorithm>
#include <utility>

namespace elasticrun::cli::run {
namespace {

constexpr std::size_t own_bytes_max = 1u << 20;
constexpr std::size_t crowd_bytes = 1u << 20;    // beyond this, workers are held back
constexpr std::size_t piece_bytes = 256u << 10;  // texts for one file are joined up to this size
constexpr Duration standstill = std::chrono::seconds(3);

std::size_t lines_in(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

}  // namespace

WriteQueue::Gap WriteQueue::put(const std::string& file, std::string_view text, bool closes,
                                Time now) {
  const std::size_t limit = in_gap_ ? bytes_max_ / 2 : bytes_max_;
  if (bytes_ + text.size() > limit) {
    refused_lines_ += lines_in(text);
    return {.begins = !std::exchange(in_gap_, true)};
  }
  append(file, text, now);
  if (closes) close(file);
  in_gap_ = false;
  return {.ended_after = std::exchange(refused_lines_, 0)};
}

void WriteQueue::put_own(const std::string& file, std::string_view text, Time now) {
  if (bytes_ + text.size() <= bytes_max_ + own_bytes_max)
    append(file, text, now);
  else
    refused_lines_ += lines_in(text);
}

void WriteQueue::append(const std::string& file, std::string_view text, Time now) {
  if (bytes_ == 0) progress_ = now;
  bytes_ += text.size();
  lines_ += lines_in(text);
  if (!pieces_.empty() && pieces_.back().file == file && pieces_.back().text.size() < piece_bytes)
    pieces_.back().text += text;
  else
    pieces_.push_back({file, std::string(text)});
}

void WriteQueue::close(const std::string& file) {
  if (pieces_.empty() || pieces_.back().file != file) pieces_.push_back({file, {}});
  pieces_.back().closes = true;
}

WriteQueue::Piece WriteQueue::take() {
  Piece piece = std::move(pieces_.front());
  pieces_.pop_front();
  return piece;
}

void WriteQueue::done(std::string_view text, Time now) {
  bytes_ -= text.size();
  lines_ -= lines_in(text);
  progress_ = now;
}

bool WriteQueue::congested(Time now) const {
  return bytes_ > crowd_bytes && now < progress_ + standstill;
}

}  // namespace elasticrun::cli::run
