// The cut into buckets, and when each may start.
#include "worker/core/buckets.hpp"

#include <doctest/doctest.h>

using namespace elasticrun::worker;
using namespace elasticrun::worker::core;
using collective::DataType;
using Indices = std::vector<std::size_t>;

namespace {

Gradient tensor(std::size_t count, DataType type = DataType::float32) {
  return {.type = type, .count = count};
}

std::vector<Indices> cut(const std::vector<Gradient>& tensors, std::size_t bytes) {
  std::vector<Indices> buckets;
  for (const Bucket& bucket : cut_into_buckets(tensors, bytes)) buckets.push_back(bucket.gradients);
  return buckets;
}

}  // namespace

TEST_CASE("buckets are cut from the last gradient to the first") {
  const std::vector<Gradient> four(4, tensor(10));
  CHECK(cut(four, 80) == std::vector<Indices>{{3}, {2, 1}, {0}});
  CHECK(cut(four, 1000) == std::vector<Indices>{{3, 2, 1, 0}});
  CHECK(cut(four, 1) == std::vector<Indices>{{3}, {2}, {1}, {0}});
  CHECK(cut({}, 80).empty());
  CHECK(cut({tensor(0), tensor(5), tensor(0)}, 80) == std::vector<Indices>{{1}});
  CHECK(cut({tensor(5), tensor(5, DataType::bfloat16), tensor(5, DataType::bfloat16)}, 80) ==
        std::vector<Indices>{{2, 1}, {0}});
  // The first one is small: a quarter, and at most a megabyte.
  const std::vector<Gradient> large(6, tensor(1u << 17));  // half a megabyte each
  // And so is the last one: a quarter.
  CHECK(cut(large, 2u << 20) == std::vector<Indices>{{5}, {4, 3, 2, 1}, {0}});
  // Or of a single gradient.
  CHECK(cut({tensor(10), tensor(10), tensor(10)}, 80) == std::vector<Indices>{{2}, {1}, {0}});
}

TEST_CASE("a bucket starts when it is whole, and those before it have started") {
  const std::vector<Bucket> buckets{{{3, 2}, {}, 2}, {{1}, {}, 1}, {{0}, {}, 1}};
  ReadyMarks marks(buckets, 4);
  const int steps[2]{};
  const int other = 0;
  CHECK_FALSE(marks.start());
  for (const int& step : steps) {
    marks.begin(&step);
    CHECK(!marks.start());
    CHECK_FALSE(marks.mark(&other, 0));  // of a step that is over
    marks.mark(&step, 1);
    CHECK(marks.mark(&step, 3));
    CHECK_FALSE(marks.mark(&step, 3));  // again
    CHECK(!marks.start());
    marks.mark(&step, 2);
    CHECK(marks.start() == 0u);
    CHECK(marks.start() == 1u);
    CHECK(!marks.start());
    CHECK(!marks.all_started());
    marks.mark(&step, 0);
    CHECK(marks.start() == 2u);
    CHECK(marks.all_started());
    CHECK(!marks.start());
  }
}
