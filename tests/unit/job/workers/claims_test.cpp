// false_claim finds a number that cannot be true, but passes one that is only odd.
#include "job/core/workers/claims.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace elasticrun::job::workers {
namespace {

constexpr std::int64_t big = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t low = std::numeric_limits<std::int64_t>::min();
constexpr std::uint64_t big_unsigned = std::numeric_limits<std::uint64_t>::max();
constexpr Generation g{7};
constexpr StepId fine{5'000}, high{big}, negative{-2};

const Possible possible = possible_after(std::chrono::seconds(3), StepId(0), g);

TEST_CASE("in each message, a number that cannot be true is named") {
  struct Case {
    const char* words;  // with which the claim begins
    wire::FromWorker message;
  };
  const Case cases[] = {
      {"step 9223372036854775807,", wire::Done{1, high}},
      {"step -2,", wire::Done{1, negative}},
      {"step 31000001,", wire::Done{1, StepId(31'000'001)}},
      {"call 9223372036854775807,", wire::Done{big, fine}},
      {"call -1,", wire::Done{-1, fine}},
      {"step 9", wire::Leave{"", high}},
      {"collectives -1", wire::Leave{"", no_state, -1}},
      {"step 9", wire::Answer{g, high}},
      {"world 8, where 7 is", wire::Answer{g.next(), fine}},
      {"step 9", wire::Committed{g, high}},
      {"world 8", wire::Committed{g.next(), fine}},
      {"step 9", wire::Diverged{.generation = g, .step = high}},
      {"world 18446744073709551615", wire::Diverged{.generation = Generation(big_unsigned)}},
      {"step 9", wire::Entered{g, high}},
      {"idle time", wire::Entered{.generation = g, .step = fine, .idle_ns = low}},
      {"time of the transfer", wire::Entered{.generation = g, .step = fine, .transfer_ns = big}},
      {"bytes of the transfer",
       wire::Entered{.generation = g, .step = fine, .transfer_bytes = big_unsigned}},
      {"world 8", wire::Publish{g.next(), "-"}},
      {"world 8", wire::PrepareFailed{g.next(), ""}},
      {"world 8", wire::Broken{g.next(), ""}},
      {"world 8", wire::Unreadable{g.next(), "", ""}},
      {"world 8", wire::Prepared{g.next(), ""}},
      {"refused connections -1", wire::Prepared{g, "", -1}},
      {"refused connections 2147483647", wire::Prepared{g, "", 2'147'483'647}},
      {"epoch -1", wire::StepSamples{g, -1}},
      {"step 9", wire::Sample{.generation = g, .step = high}},
      {"steps -1", wire::Sample{.generation = g, .step = fine, .steps = -1}},
      {"steps 9", wire::Sample{.generation = g, .step = fine, .steps = big}},
      {"samples 9", wire::Sample{.generation = g, .step = fine, .samples = big}},
      {"time of steps", wire::Sample{.generation = g, .step = fine, .wall_ns = big}},
      {"time in compute", wire::Sample{.generation = g, .step = fine, .compute_ns = low}},
      {"time in reductions", wire::Sample{.generation = g, .step = fine, .reduce_ns = low}},
      {"time in this phase", wire::Sample{.generation = g, .step = fine, .waiting_ns = low}},
      {"bytes of the transfer",
       wire::Sample{.generation = g, .step = fine, .transfer_bytes = big_unsigned}},
      {"steps of measured noise",
       wire::Sample{.generation = g, .step = fine, .noise = {{.steps = low}}}},
      {"step 9", wire::Saved{.number = 1, .generation = g, .step = high}},
      {"save -1", wire::Saved{.number = -1, .generation = g, .step = fine}},
      {"rank 2", wire::Saved{.generation = g, .step = fine, .rank = 2, .size = 2}},
      {"rank -1", wire::Saved{.generation = g, .step = fine, .rank = -1, .size = 2}},
      {"size of the world", wire::Saved{.generation = g, .step = fine, .size = -1}},
      {"call 9", wire::Saved{.generation = g, .step = fine, .call = big}},
      {"epoch -9", wire::Saved{.generation = g, .step = fine, .epoch = low}},
      {"place in the epoch -9", wire::Saved{.generation = g, .step = fine, .cursor = low}},
      {"bytes of a file",
       wire::Saved{.generation = g, .step = fine, .files = {{"part-0", big_unsigned, ""}}}},
      {"time before the next step", wire::Saved{.generation = g, .step = fine, .held_ns = low}},
      {"time of the save", wire::Saved{.generation = g, .step = fine, .took_ns = big}},
      {"call -3", wire::Ready{{.call = -3}}},
      {"samples -1", wire::Ready{{.call = 1, .samples = -1}}},
      {"epochs -1", wire::Ready{{.call = 1, .epochs = -1}}},
      {"batch -5", wire::Ready{{.call = 1, .batch = -5}}},
      {"batch 1099511627777", wire::Ready{{.call = 1, .batch = (std::int64_t{1} << 40) + 1}}},
      {"base batch -7", wire::Ready{{.call = 1, .base_batch = -7}}},
      {"bytes of the state", wire::Ready{{.call = 1, .state_bytes = big_unsigned}}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.words);
    const std::string claim = false_claim(c.message, possible);
    CAPTURE(claim);
    CHECK(claim.starts_with(c.words));
    CHECK((claim.ends_with(" is possible") || claim.ends_with(" is the newest")));
  }
}

TEST_CASE("an odd but possible number passes") {
  const double nan = std::nan("");
  const wire::FromWorker messages[] = {
      wire::Join{},
      wire::Ready{{.call = 1, .samples = big, .epochs = big, .batch = std::int64_t{1} << 40}},
      wire::Sample{},
      wire::Sample{.generation = g, .step = no_state, .waiting_ns = -1},
      // Gradients that are not finite are the program's affair.
      wire::Sample{.generation = g, .step = fine, .noise = {{.square = nan, .variance = INFINITY}}},
      wire::Done{1, StepId(31'000'000)},
      wire::Done{0, no_state},
      wire::Leave{"", no_state},
      wire::Answer{g, no_state},
      wire::Entered{.generation = g, .step = StepId(0)},
      wire::Saved{.number = 1, .generation = g, .step = fine, .error = "no space"},
      wire::Saved{.number = 1, .generation = g, .step = fine, .rank = 1, .size = 2},
  };
  for (const wire::FromWorker& message : messages) {
    CAPTURE(message.index());
    CHECK(false_claim(message, possible) == "");
  }
}

TEST_CASE("a job may have made steps before it began, and more with time") {
  CHECK(possible_after(Duration::zero(), StepId(40), g).step == StepId(1'000'040));
  CHECK(possible_after(Duration::zero(), StepId(big), g).step.value > 0);
  const auto year = std::chrono::hours(24 * 365);
  CHECK(possible_after(year, no_state, g).step > possible_after(year / 2, no_state, g).step);
}

}  // namespace
}  // namespace elasticrun::job::workers
