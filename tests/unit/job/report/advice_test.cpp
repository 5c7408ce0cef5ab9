// The messages between elasticrun and the program of --policy exec:.
#include "job/report/advice.hpp"

#include <doctest/doctest.h>

#include <boost/json.hpp>

using namespace elasticrun;
using namespace elasticrun::job;
using namespace elasticrun::job::report;
using namespace std::chrono_literals;

namespace {

Result<std::string> printed(std::string text) { return ok(std::move(text)); }

}  // namespace

TEST_CASE("a question is one line of JSON, with null for what is not known") {
  autoscaler::Question question;
  question.now = Time{} + 100s;
  question.snapshot.size = 2;
  question.snapshot.elapsed = 90s;
  question.limits.max = 4;
  question.limits.sizes = {1, 2};
  const std::string nothing_known = question_text(question);
  CHECK(nothing_known ==
        R"({"version":1,"size":2,"global_batch":null,"base_batch":null,"noise_scale":null,)"
        R"("samples_left":null,"elapsed_s":90.0,"spent":0,)"
        R"("min":1,"max":4,"settle_s":10,"min_gain":0.1,"sizes":[],"curve":[]})"
        "\n");
  question.snapshot.global_batch = 1234567;
  question.snapshot.base_batch = 32;
  question.snapshot.noise = Noise{.square = 0.5, .variance = 40, .steps = 1};
  question.snapshot.samples_left = 0;
  question.snapshot.spent = 2.5;
  // A size that runs but is not available again is not among the sizes.
  question.snapshot.offers = {{1, 1, 3.06, 32}, {2, 0, 6.12, 64}, {3, 2, 9.18, 96}};
  autoscaler::Measure measure;
  measure.size = 2;
  measure.samples_per_s = 426.63;
  measure.error = 0.0123;
  measure.steps = 120;
  measure.at = Time{} + 97s;
  question.snapshot.curve = {measure};
  const std::string known = question_text(question);
  CHECK(known == R"({"version":1,"size":2,"global_batch":1234567,"base_batch":32,"noise_scale":80,)"
                 R"("samples_left":0,"elapsed_s":90.0,"spent":2.5,)"
                 R"("min":1,"max":4,"settle_s":10,"min_gain":0.1,)"
                 R"("sizes":[{"size":1,"global_batch":32,"hosts":1,"price_per_h":3.06},)"
                 R"({"size":2,"global_batch":64,"hosts":null,"price_per_h":6.12}],)"
                 R"("curve":[{"size":2,"samples_per_s":426.63,"error":0.0123,"compute_share":null,)"
                 R"("steps":120,"age_s":3.0}]})"
                 "\n");
  for (const std::string& text : {nothing_known, known})
    CHECK(boost::json::parse(text).is_object());
}

TEST_CASE("an answer is a JSON object, or a precise error") {
  struct Case {
    const char* printed;
    int target;
    const char* reason;  // the error, when target is 0
  };
  const Case cases[] = {
      {"{\"target\":6}", 6, ""},
      {" {\"target\": 6, \"reason\": \"it\\npays\", \"mood\": [1]}\n\n", 6, "it pays"},
      {"{\"target\":6.0,\"reason\":\"\"}", 6, ""},
      {"{\"target\":-3}", -3, ""},
      {"", 0, "printed nothing"},
      {" \n", 0, "printed nothing"},
      {"six", 0, "printed something else than a JSON object: 'six'"},
      {"6", 0, "printed something else than a JSON object: '6'"},
      {"{\"target\":6}{\"target\":6}", 0,
       "printed something else than a JSON object: '{\"target\":6}{\"target\":6}'"},
      {"{\"target\":6", 0, "printed something else than a JSON object: '{\"target\":6'"},
      {"\x01\xff\x1b[2J", 0, "printed something else than a JSON object: '\?\?\?[2J'"},
      {"{}", 0, "printed no target that is a whole number: '{}'"},
      {"{\"target\":\"6\"}", 0, "printed no target that is a whole number: '{\"target\":\"6\"}'"},
      {"{\"target\":6.5}", 0, "printed no target that is a whole number: '{\"target\":6.5}'"},
      {"{\"target\":1e30}", 0, "printed no target that is a whole number: '{\"target\":1e30}'"},
      {"{\"target\":6,\"reason\":1}", 0,
       "printed a reason that is no text: '{\"target\":6,\"reason\":1}'"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.printed);
    const auto advice = read_advice(printed(c.printed));
    CHECK(advice.has_value() == (c.target != 0));
    if (advice) CHECK(advice->target == c.target);
    CHECK((advice ? advice->reason : advice.error().text) == c.reason);
  }
}

TEST_CASE("long texts are truncated, but not inside a character") {
  const std::string long_reason = "{\"target\":1,\"reason\":\"x" + [] {
    std::string text;
    for (int i = 0; i < 1000; ++i) text += "\xc3\xa9";
    return text;
  }() + "\"}";
  const auto advice = read_advice(printed(long_reason));
  REQUIRE(advice.has_value());
  CHECK(advice->reason.size() == 302);
  CHECK(advice->reason.starts_with("x\xc3\xa9\xc3\xa9"));
  CHECK(advice->reason.ends_with("\xc3\xa9..."));
  CHECK(read_advice(printed(std::string(1 << 20, 'y'))).error().text ==
        "printed something else than a JSON object: '" + std::string(60, 'y') + "...'");
  CHECK(read_advice(Error{"ended with exit code 7: a\xff\nb"}).error().text ==
        "ended with exit code 7: a? b");
}
