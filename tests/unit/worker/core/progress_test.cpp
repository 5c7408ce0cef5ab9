// The progress of training: steps use each position of an epoch once, and the encoded text is
// decoded without loss.
#include "worker/core/progress.hpp"

#include <doctest/doctest.h>

using elasticrun::worker::core::decode_progress;
using elasticrun::worker::core::Progress;
using elasticrun::worker::core::Range;
using elasticrun::worker::core::step_range;

TEST_CASE("the steps of an epoch follow each other and end with it") {
  struct Case {
    const char* what;
    std::int64_t cursor, global_batch, samples;
    Range range;
    std::int64_t cursor_after, epoch_after;
  };
  const Case cases[] = {
      {"the first step", 0, 32, 100, {0, 32}, 32, 0},
      {"the last step is what is left", 96, 32, 100, {96, 100}, 0, 1},
      {"the last step fits", 68, 32, 100, {68, 100}, 0, 1},
      {"a batch larger than the epoch", 0, 500, 100, {0, 100}, 0, 1},
      {"a batch near the limit of int64", 1, INT64_MAX, 100, {1, 100}, 0, 1},
      {"an epoch of one sample", 0, 1, 1, {0, 1}, 0, 1},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    Progress progress;
    progress.cursor = c.cursor;
    progress.step = 7;
    CHECK(step_range(progress, c.global_batch, c.samples) == c.range);
    const Progress after = progress.next(c.global_batch, c.samples);
    CHECK(after.cursor == c.cursor_after);
    CHECK(after.epoch == c.epoch_after);
    CHECK(after.step == 8);
  }
}

TEST_CASE("where the end of an epoch is a step, the cursor waits at the end for it") {
  Progress progress{.train_call = 1, .epoch = 4, .cursor = 96, .step = 7};
  progress = progress.next(32, 100, true);
  CHECK((progress == Progress{.train_call = 1, .epoch = 4, .cursor = 100, .step = 8}));
  const auto decoded = decode_progress(encode(progress));
  REQUIRE(decoded.has_value());
  CHECK((*decoded == progress));
  CHECK((progress.after_end() == Progress{.train_call = 1, .epoch = 5, .cursor = 0, .step = 9}));
}

TEST_CASE("changing batches use every position once") {
  Progress progress;
  std::int64_t used = 0;
  const std::int64_t batches[] = {32, 7, 256, 1};
  for (std::size_t k = 0; progress.epoch < 3; ++k) {
    const Range range = step_range(progress, batches[k % 4], 1000);
    CHECK(range.first == used % 1000);
    CHECK(range.count() > 0);
    used += range.count();
    progress = progress.next(batches[k % 4], 1000);
  }
  CHECK(used == 3000);
}

TEST_CASE("progress survives a round trip") {
  const Progress cases[] = {
      {},
      {1, 2, 3, 4, 5, 6, {}},
      {1,
       0,
       59'999,
       INT64_MAX,
       32,
       UINT64_MAX,
       {"loss", "", "a name with spaces\nand lines", "12 x"}},
      {1, 0, 0, 0, 0, 0, std::vector<std::string>(32, std::string(256, 'n'))},
      {1, 2, 3, 4, 5, 6, {"loss"}, {1.0 / 3, -0.1, 0x1.fffffffffffffp-1, 7, true}, 1e300 / 3},
  };
  for (const Progress& progress : cases) {
    const auto back = decode_progress(encode(progress));
    REQUIRE(back.has_value());
    CHECK(*back == progress);
  }
}

TEST_CASE("damaged progress is refused") {
  const std::string good = encode(Progress{1, 2, 3, 4, 5, 6, {"loss", "hits"}});
  for (std::size_t length = 0; length < good.size(); ++length) {
    CAPTURE(length);
    CHECK(decode_progress(good.substr(0, length)).has_error());
  }
  const char* const cases[] = {
      "1 1 0 0 0 0 0 0 0 0 0 0 0 0 ",                        // another version
      "2 1 -1 0 0 0 0 0 0 0 0 0 0 0 ",                       // a negative epoch
      "2 1 0 0 0 0 -1 0 0 0 0 0 0 0 ",                       // a negative seed
      "2 1 0 0 0 0 0 33 0 0 0 0 0 0 ",                       // too many names
      "2 1 0 0 0 0 0 1 0 0 0 0 0 0 9999999999999999999 x ",  // an impossible length of a name
      "2 1 0 0 0 0 0 1 0 0 0 0 0 0 3 ab ",                   // a length that does not match
      "2 1 0 0 0 0 0 0 0 0 0 0 0 0 more",                    // text after the end
      "2 1 99999999999999999999 0 0 0 0 0 0 0 0 0 0 0 ",     // beyond int64
      "2 1 0 0 0 0 0 0 0 0 0 -1 0 0 ",                       // a negative number of steps
      "2 1 0 0 0 0 0 0 x 0 0 0 0 0 ",                        // not a number
  };
  CHECK(decode_progress("2 1 0 0 0 0 0 0 0 0 0 0 0 0 ").has_value());
  for (const char* const text : cases) {
    CAPTURE(text);
    CHECK(decode_progress(text).has_error());
  }
}
