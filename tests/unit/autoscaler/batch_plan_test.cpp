// Tables of batch plans.
#include "autoscaler/batch_plan.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

using namespace elasticrun;
using namespace elasticrun::autoscaler;

TEST_CASE("global batch and learning-rate factor") {
  struct Case {
    const char* what;
    BatchRule rule;
    int size;
    std::int64_t global;
    double factor;
  };
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  const Case cases[] = {
      {"below the cap", {256, 32, 128, LrRule::linear}, 4, 128, 1},
      {"at the cap", {256, 32, 128, LrRule::linear}, 8, 256, 2},
      {"beyond the cap", {256, 32, 128, LrRule::linear}, 12, 256, 2},
      {"one worker, smaller than the base", {256, 32, 128, LrRule::linear}, 1, 32, 0.25},
      {"a cap that b does not divide", {100, 32, 0, LrRule::linear}, 4, 100, 1},
      {"no b: the cap at every size", {256, 0, 128, LrRule::linear}, 3, 256, 2},
      {"no cap", {0, 32, 32, LrRule::linear}, 16, 512, 16},
      {"neither: the program decides", {0, 0, 128, LrRule::linear}, 4, 0, 1},
      {"no base: no factor", {0, 32, 0, LrRule::linear}, 4, 128, 1},
      {"root", {0, 32, 32, LrRule::sqrt}, 16, 512, 4},
      {"none", {0, 32, 32, LrRule::none}, 16, 512, 1},
      {"the workers' own", {0, 32, 32, LrRule::adascale}, 16, 512, 1},
      {"fewer samples than workers", {2, 1, 2, LrRule::linear}, 5, 2, 1},
      {"no overflow", {0, huge / 2, 0, LrRule::linear}, 1000, most_global_batch, 1},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    const BatchPlan made = plan(c.rule, c.size, {});
    CHECK(made.global_batch == c.global);
    CHECK(made.lr_factor == doctest::Approx(c.factor));
    CHECK(made.micro_batch == 0);
    CHECK(made.weights.empty());
  }
}

TEST_CASE("a share above the program's batch is computed in micro-batches") {
  const BatchRule rule{.max_batch = 256, .batch = 32};
  CHECK(plan(rule, 4, {1, 1, 1, 1}).micro_batch == 0);
  CHECK(plan(rule, 4, {2, 1, 1, 1}).micro_batch == 32);
  CHECK(plan(rule, 4, {2, 1, 1, 1}).global_batch == 128);
  CHECK(plan(rule, 4, {2, 1, 1, 1}).weights == std::vector<double>{2, 1, 1, 1});
  CHECK(plan(rule, 12, {2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}).micro_batch == 32);
  CHECK(plan(rule, 16, std::vector<double>(16, 0.5)).micro_batch == 0);
  CHECK(plan({.max_batch = 256}, 2, {3, 1}).micro_batch == 0);
}

TEST_CASE("noise is measured where something needs it, against the base batch") {
  struct Case {
    const char* what;
    BatchRule rule;
    std::int64_t noise_base;
  };
  const Case cases[] = {
      {"nobody does", {256, 32, 64, LrRule::linear}, 0},
      {"the learning rate", {256, 32, 64, LrRule::adascale}, 64},
      {"another", {256, 32, 64, LrRule::sqrt, true}, 64},
      {"no base is said: this batch is the first", {256, 32, 0, LrRule::adascale}, 128},
      {"the program decides", {0, 0, 0, LrRule::adascale}, 0},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    const BatchPlan made = plan(c.rule, 4, {});
    CHECK(made.noise_base == c.noise_base);
    CHECK(made.adascale == (c.rule.lr_rule == LrRule::adascale));
  }
}

TEST_CASE("learning-rate rules are parsed and printed") {
  for (const LrRule rule : {LrRule::none, LrRule::linear, LrRule::sqrt, LrRule::adascale})
    CHECK(parse_lr_rule(to_text(rule)).value() == rule);
  for (const char* bad : {"", "Linear", "adam", "linear "}) {
    CAPTURE(bad);
    const auto parsed = parse_lr_rule(bad);
    REQUIRE(parsed.has_error());
    CHECK(parsed.error().text == "unknown learning-rate rule '" + std::string(bad) +
                                     "'; use none, linear, sqrt or adascale");
  }
}
