// The format of an agent's control stream on its standard output: blocks of a two-byte length
// (big-endian) and that number of bytes. A block of length 0 ends the stream.
//
// Plain bytes would not show their end: sshd passes on the end of a command's output only when its
// standard error has ended too, and the agent needs its standard error as long as it lives. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace elasticrun::launcher::executors {

inline constexpr std::size_t stream_block_max = 32u << 10;

inline std::array<char, 2> stream_block_head(std::size_t bytes) {
  return {static_cast<char>(bytes >> 8), static_cast<char>(bytes & 0xff)};
}

class StreamBlocks {
 public:
  // Appends the content of the blocks to `out`. Bytes after the end of the stream are ignored.
  void feed(std::string_view bytes, std::string& out);
  bool ended() const { return ended_; }

 private:
  std::size_t head_ = 0;  // the length, as far as it has been received
  int head_bytes_ = 0;    // number of bytes of the length received
  std::size_t left_ = 0;  // bytes of the block still to come
  bool ended_ = false;
};

}  // namespace elasticrun::launcher::executors
