// The cut into buckets, and when each may start.
#include "worker/training/buckets.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <set>

#include "worker/training/overlap.hpp"

using namespace elasticrun::worker;
using namespace elasticrun::worker::training;
using collective::DataType;
using Indices = std::vector<std::size_t>;

namespace {

state::Tensor tensor(std::size_t count, DataType type = DataType::float32) {
  return {.name = "g", .data = nullptr, .type = type, .count = count};
}

std::vector<Indices> cut(const std::vector<state::Tensor>& tensors, std::size_t bytes) {
  std::vector<Indices> buckets;
  for (const Bucket& bucket : cut_into_buckets(tensors, bytes)) buckets.push_back(bucket.gradients);
  return buckets;
}

}  // namespace

TEST_CASE("buckets are cut from the last gradient to the first") {
  const std::vector<state::Tensor> four(4, tensor(10));
  CHECK(cut(four, 80) == std::vector<Indices>{{3}, {2, 1}, {0}});
  CHECK(cut(four, 1000) == std::vector<Indices>{{3, 2, 1, 0}});
  CHECK(cut(four, 1) == std::vector<Indices>{{3}, {2}, {1}, {0}});
  CHECK(cut({}, 80).empty());
  CHECK(cut({tensor(0), tensor(5), tensor(0)}, 80) == std::vector<Indices>{{1}});
  CHECK(cut({tensor(5), tensor(5, DataType::bfloat16), tensor(5, DataType::bfloat16)}, 80) ==
        std::vector<Indices>{{2, 1}, {0}});
  // The first one is small: a megabyte.
  const std::vector<state::Tensor> large(6, tensor(1u << 17));  // half a megabyte each
  // And so is the last one: a quarter.
  CHECK(cut(large, 2u << 20) == std::vector<Indices>{{5}, {4, 3, 2, 1}, {0}});
}

TEST_CASE("a bucket starts when it is whole, and those before it have started") {
  const std::vector<Bucket> buckets{{{3, 2}, {}, 2}, {{1}, {}, 1}, {{0}, {}, 1}};
  ReadyMarks marks(buckets, 4);
  for (int step = 0; step < 2; ++step) {
    marks.begin();
    CHECK(!marks.start());
    marks.mark(1);
    CHECK(marks.mark(3));
    CHECK_FALSE(marks.mark(3));  // again
    CHECK(!marks.start());
    marks.mark(2);
    CHECK(marks.start() == 0u);
    CHECK(marks.start() == 1u);
    CHECK(!marks.start());
    CHECK(!marks.all_started());
    marks.mark(0);
    CHECK(marks.start() == 2u);
    CHECK(marks.all_started());
    CHECK(!marks.start());
  }
}

TEST_CASE("buckets are reduced in order while gradients become ready, from several threads") {
  const std::vector<Bucket> buckets{{{3, 2}, {}, 2}, {{1}, {}, 1}, {{0}, {}, 1}};
  Indices reduced;
  std::atomic<std::size_t> last{9};
  Indices said;
  Overlap overlap(
      [&](std::size_t bucket) {
        reduced.push_back(bucket);
        last = bucket;
        last.notify_all();
      },
      [&](std::size_t gradient) { said.push_back(gradient); });
  overlap.cut(buckets, 4);
  int step = 0, other = 0;
  for (int i = 0; i < 200; ++i) {
    reduced.clear();
    last = 9;
    said.clear();
    overlap.begin(&step);  // an earlier piece
    for (const std::size_t gradient : {0, 1, 2, 3}) overlap.ready(&step, gradient, false);
    overlap.begin(&step);
    overlap.start();
    CHECK(overlap.ready(&other, 3, true));  // of a step that is over
    CHECK_FALSE(overlap.ready(&step, 4, true));
    std::thread early([&] { overlap.ready(&step, 3, true); });
    std::thread late([&] { overlap.ready(&step, 2, false); });
    last.wait(9);  // the first bucket is reduced before the step ends
    early.join();
    late.join();
    overlap.ready(&step, 0, true);
    CHECK(overlap.is_set(3));
    CHECK_FALSE(overlap.is_set(2));
    overlap.finish();
    CHECK(reduced == Indices{0, 1, 2});
    CHECK(said.size() == 8);
    CHECK(said.back() == 1);  // nobody has reported it
    CHECK_FALSE(overlap.active());
    overlap.ready(&step, 1, true);
  }
}

TEST_CASE("what breaks in a bucket is thrown by finish, and no other bucket starts") {
  const std::vector<Bucket> buckets{{{1}, {}, 1}, {{0}, {}, 1}};
  Indices reduced;
  Overlap overlap(
      [&](std::size_t bucket) {
        reduced.push_back(bucket);
        if (bucket == 0) throw collective::GroupBroken("gone");
      },
      [](std::size_t) {});
  overlap.cut(buckets, 2);
  int step = 0;
  overlap.begin(&step);
  overlap.start();
  overlap.ready(&step, 0, true);
  overlap.ready(&step, 1, true);
  CHECK_THROWS_AS(overlap.finish(), collective::GroupBroken);
  CHECK(reduced == Indices{0});
  overlap.finish();  // nothing is under way
  overlap.begin(&step);
  overlap.start();
  overlap.cancel();
  CHECK_FALSE(overlap.active());
}
