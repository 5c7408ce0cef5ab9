// The samples of a step as text fit one message of a worker, whatever the size of the world.
#include "worker/core/named_samples.hpp"

#include <doctest/doctest.h>

#include "wire/codec.hpp"
#include "wire/limits.hpp"
#include "worker/core/shares.hpp"

namespace elasticrun::worker::core {
namespace {

TEST_CASE("a rank's samples are named, and many are counted") {
  const Permutation order(7, 0, 1000);
  const std::int64_t shares[] = {2, 0, 100, 1};
  const auto texts = named_samples(10, shares, order);
  REQUIRE(texts.size() == 4);
  CHECK(texts[0] == std::to_string(order[10]) + " " + std::to_string(order[11]));
  CHECK(texts[1].empty());
  CHECK(texts[2].starts_with(std::to_string(order[12]) + " "));
  CHECK(texts[2].ends_with(" " + std::to_string(order[12 + 63]) + " and 36 more"));
  CHECK(texts[3] == std::to_string(order[112]));
}

TEST_CASE("the samples of the largest worlds fit one message") {
  constexpr std::uint64_t samples = std::uint64_t{1} << 60;
  const Permutation order(7, 0, samples);
  for (const int size : {1, 1000, 7000, 60'000, static_cast<int>(wire::world_size_max)}) {
    CAPTURE(size);
    for (const std::int64_t batch :
         {std::int64_t{size}, std::int64_t{size} * 100, max_global_batch}) {
      const auto texts = named_samples(0, split(batch, size), order);
      for (const std::string& text : texts) REQUIRE_FALSE(text.empty());
      const wire::StepSamples message{.generation = Generation(~0ULL), .by_rank = texts};
      CHECK(wire::encode(wire::FromWorker(message)).size() <= wire::worker_message_bytes_max);
    }
  }
}

}  // namespace
}  // namespace elasticrun::worker::core
