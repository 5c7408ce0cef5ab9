// Buckets on their way while a step computes.
#include "worker/training/overlap.hpp"

#include <doctest/doctest.h>
#include <pthread.h>

#include <atomic>
#include <thread>

#include "worker/collective/group.hpp"

using namespace elasticrun::worker;
using namespace elasticrun::worker::training;
using core::Bucket;
using Indices = std::vector<std::size_t>;
using Places = std::vector<const void*>;

TEST_CASE("buckets are reduced in order while gradients become ready, from several threads") {
  const std::vector<Bucket> buckets{{{3, 2}, {}, 2}, {{1}, {}, 1}, {{0}, {}, 1}};
  Indices reduced;
  std::atomic<std::size_t> last{9};
  Indices said;
  Overlap overlap(
      [&] {
        while (const auto bucket = overlap.next_waiting()) {
          reduced.push_back(*bucket);
          last = *bucket;
          last.notify_all();
        }
      },
      [&](std::size_t gradient) { said.push_back(gradient); });
  overlap.cut(buckets, 4);
  int step = 0, other = 0;
  const float elsewhere = 0;
  for (int i = 0; i < 200; ++i) {
    reduced.clear();
    last = 9;
    said.clear();
    overlap.begin(&step);  // an earlier piece
    for (const std::size_t gradient : {0, 1, 2, 3}) overlap.unset(&step, gradient);
    overlap.begin(&step);
    overlap.start();
    CHECK(overlap.ready(&other, Indices{3}));  // of a step that is over
    CHECK_FALSE(overlap.ready(&step, Indices{4}));
    std::thread early([&] { overlap.ready(&step, Indices{3}, Places{&elsewhere}); });
    std::thread late([&] { overlap.unset(&step, 2); });
    last.wait(9);  // the first bucket is reduced before the step ends
    early.join();
    late.join();
    overlap.ready(&step, Indices{0, 3}, Places{nullptr, nullptr});  // of 3 the first report counts
    overlap.close();
    overlap.ready(&step, Indices{1}, Places{&elsewhere});  // too late
    CHECK(overlap.value_of(3).is_set);
    CHECK(overlap.value_of(3).data == &elsewhere);
    CHECK_FALSE(overlap.value_of(2).is_set);
    for (const std::size_t gradient : {0, 1, 2}) CHECK(overlap.value_of(gradient).data == nullptr);
    CHECK(overlap.active());
    overlap.finish();
    CHECK(reduced == Indices{0, 1});  // the last one is the caller's
    CHECK(said.size() == 8);
    CHECK(said.back() == 1);  // nobody has reported it
    CHECK_FALSE(overlap.active());
    overlap.ready(&step, Indices{1});
  }
}

TEST_CASE("buckets that come while others are reduced are taken along, and none after a cancel") {
  const std::vector<Bucket> buckets{{{3}, {}, 1}, {{2}, {}, 1}, {{1}, {}, 1}, {{0}, {}, 1}};
  std::vector<Indices> calls;  // the buckets of each
  std::atomic<bool> begun = false, goes_on = false;
  Overlap overlap(
      [&] {
        calls.emplace_back();
        while (const auto bucket = overlap.next_waiting()) {
          calls.back().push_back(*bucket);
          begun = true;
          begun.notify_all();
          goes_on.wait(false);
        }
      },
      {});
  overlap.cut(buckets, 4);
  const int steps[]{0, 0};
  for (const int& step : steps) {
    calls.clear();
    begun = goes_on = false;
    overlap.begin(&step);
    overlap.start();
    overlap.ready(&step, Indices{3});
    begun.wait(false);
    overlap.ready(&step, Indices{2, 1, 0});
    const bool is_cancelled = &step == steps;
    std::jthread later([&] {
      if (is_cancelled) overlap.cancel();
    });
    if (is_cancelled)
      while (overlap.active()) std::this_thread::yield();
    goes_on = true;
    goes_on.notify_all();
    later.join();
    overlap.finish();
    CHECK(calls == std::vector<Indices>{is_cancelled ? Indices{0} : Indices{0, 1, 2}});
  }
}

TEST_CASE("a step's only bucket is the caller's") {
  const std::vector<Bucket> buckets{{{0, 1}, {}, 2}};
  std::atomic<int> reduced = 0;
  Overlap overlap([&] { ++reduced; }, {});
  overlap.cut(buckets, 2);
  const int steps[]{0, 0};
  for (const int& step : steps) {
    overlap.begin(&step);
    overlap.start();
    overlap.ready(&step, Indices{0, 1});
    if (&step == steps)
      overlap.cancel();
    else
      overlap.finish();
  }
  CHECK(reduced == 0);
}

TEST_CASE("what breaks in a bucket is thrown by finish, and no other bucket starts") {
  const std::vector<Bucket> buckets{{{2}, {}, 1}, {{1}, {}, 1}, {{0}, {}, 1}};
  Indices reduced;
  Overlap overlap(
      [&] {
        reduced.push_back(*overlap.next_waiting());
        if (reduced.back() == 0) throw collective::GroupBroken("gone");
      },
      [](std::size_t) {});
  overlap.cut(buckets, 3);
  int step = 0;
  overlap.begin(&step);
  overlap.start();
  overlap.ready(&step, Indices{0, 1, 2});
  CHECK_THROWS_AS(overlap.finish(), collective::GroupBroken);
  CHECK(reduced == Indices{0});
  overlap.finish();  // nothing is under way
  overlap.begin(&step);
  overlap.start();
  overlap.cancel();
  CHECK_FALSE(overlap.active());
}

TEST_CASE("where no thread can be had, finish says so in the words of the system") {
  const std::vector<Bucket> buckets{{{1}, {}, 1}, {{0}, {}, 1}};
  Overlap overlap([] { FAIL("there is no thread"); }, {});
  overlap.cut(buckets, 2);
  int step = 0;
  overlap.begin(&step);
  overlap.start();
  // No address space has room for such a stack. Limits of processes would not bind root.
  pthread_attr_t before, huge;
  REQUIRE(::pthread_getattr_default_np(&before) == 0);
  REQUIRE(::pthread_attr_init(&huge) == 0);
  REQUIRE(::pthread_attr_setstacksize(&huge, std::size_t{1} << 60) == 0);
  REQUIRE(::pthread_setattr_default_np(&huge) == 0);
  CHECK(overlap.ready(&step, Indices{1}));
  REQUIRE(::pthread_setattr_default_np(&before) == 0);
  CHECK_THROWS_WITH(
      overlap.finish(),
      "no thread for reductions beside the program: Resource temporarily unavailable");
}
