// See frame.hpp.
#include "wire/frame.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "base/check.hpp"
#include "wire/limits.hpp"

namespace elasticrun::wire {
namespace {

// The memory of a buffer that one big frame has grown beyond this is given back.
constexpr std::size_t keep_capacity = 1u << 20;

constexpr std::uint32_t passing_bit = 1u << 31;

void append_u32(std::string& out, std::uint32_t x) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(x >> shift & 255);
}

std::uint32_t read_u32(const char* p) {
  std::uint32_t x = 0;
  for (int i = 0; i < 4; ++i) x = x << 8 | static_cast<unsigned char>(p[i]);
  return x;
}

}  // namespace

void append_frame(std::string& out, WorkerId worker, std::string_view payload, bool passing) {
  ER_CHECK(payload.size() <= frame_bytes_max);
  append_u32(out, static_cast<std::uint32_t>(payload.size()) | (passing ? passing_bit : 0));
  append_u32(out, worker.value);
  out += payload;
}

std::string for_several(const std::vector<WorkerId>& workers, std::string_view message) {
  std::string payload;
  payload.reserve(sizeof(std::uint32_t) * (1 + workers.size()) + message.size());
  append_u32(payload, static_cast<std::uint32_t>(workers.size()));
  for (const WorkerId worker : workers) append_u32(payload, worker.value);
  payload += message;
  return payload;
}

Result<ForSeveral> read_for_several(std::string_view payload) {
  constexpr std::size_t word = sizeof(std::uint32_t);
  const std::size_t count = payload.size() < word ? 0 : read_u32(payload.data());
  if (count == 0 || count > payload.size() / word - 1)
    return Error{"a message for several workers names none, or more than it can hold"};
  ForSeveral several{{}, payload.substr(word * (1 + count))};
  several.workers.reserve(count);
  for (std::size_t i = 1; i <= count; ++i)
    several.workers.emplace_back(read_u32(payload.data() + word * i));
  return several;
}

void FrameReader::feed(std::string_view bytes) {
  if (begin_ == buffer_.size()) {
    buffer_.clear();
    if (buffer_.capacity() > keep_capacity) buffer_.shrink_to_fit();
  } else {
    buffer_.erase(0, begin_);
  }
  begin_ = 0;
  buffer_ += bytes;
}

Result<std::optional<Frame>> FrameReader::next() {
  const std::size_t have = buffer_.size() - begin_;
  if (have < frame_header_bytes) return std::optional<Frame>();
  const char* header = buffer_.data() + begin_;
  const std::uint32_t first = read_u32(header);
  const std::size_t size = first & ~passing_bit;
  if (size > payload_max_)
    return Error{
        fmt::format("a frame of {} bytes came where at most {} are allowed; not elasticrun?", size,
                    payload_max_)};
  if (have - frame_header_bytes < size) return std::optional<Frame>();
  begin_ += frame_header_bytes + size;
  return std::optional<Frame>(Frame{WorkerId(read_u32(header + 4)),
                                    std::string_view(header + frame_header_bytes, size),
                                    (first & passing_bit) != 0});
}

}  // namespace elasticrun::wire
