// How the control stream of an agent looks on its standard output: blocks of two bytes of length,
// then so many bytes; the one of length 0 ends it.
//
// Plain bytes would do but for their end: sshd passes the end of a command's output on only when
// its standard error has ended, too, and that is needed for as long as the agent lives. Pure.
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
  // Appends what is in the blocks to `out`; what comes after the end is ignored.
  void feed(std::string_view bytes, std::string& out);
  bool ended() const { return ended_; }

 private:
  std::size_t head_ = 0;  // as much of it as has come
  int head_bytes_ = 0;
  std::size_t left_ = 0;  // of the block
  bool ended_ = false;
};

}  // namespace elasticrun::launcher::executors
