// The blocks in which a control stream is sent over standard output.
#include "launcher/executors/stream_blocks.hpp"

#include <doctest/doctest.h>

namespace elasticrun::launcher::executors {
namespace {

std::string block(const std::string& text) {
  const auto head = stream_block_head(text.size());
  return std::string(head.data(), head.size()) + text;
}

TEST_CASE("the bytes are the same in whatever pieces the blocks arrive") {
  const std::string big(stream_block_max, 'x');
  const std::string small =
      block("a") + block(std::string("\0\xff\n", 3)) + block("bc") + block("");
  for (const std::size_t piece : {1, 2, 3, 4, 5, 100}) {
    CAPTURE(piece);
    StreamBlocks blocks;
    std::string out;
    for (std::size_t at = 0; at < small.size(); at += piece) {
      CHECK_FALSE(blocks.ended());
      blocks.feed(std::string_view(small).substr(at, piece), out);
    }
    CHECK(blocks.ended());
    CHECK(out == std::string("a\0\xff\nbc", 6));
  }
  StreamBlocks blocks;
  std::string out;
  blocks.feed(block(big) + block(big), out);
  CHECK(out == big + big);
}

TEST_CASE("nothing is passed on after the end") {
  StreamBlocks blocks;
  std::string out;
  blocks.feed(block("a") + block("") + block("b"), out);
  blocks.feed(block("c"), out);
  CHECK(blocks.ended());
  CHECK(out == "a");
}

}  // namespace
}  // namespace elasticrun::launcher::executors
