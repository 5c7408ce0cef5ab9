// The policy that asks a program: when it asks, how often, and which answers count.
#include "autoscaler/exec.hpp"

#include <doctest/doctest.h>

#include "autoscaler/autoscaler.hpp"

using namespace elasticrun;
using namespace elasticrun::autoscaler;
using namespace std::chrono_literals;

namespace {

const Time start{};

// Four workers run; sizes 2, 4 and 6 are available.
struct Asked {
  Snapshot snapshot;
  Limits limits;
  Exec policy;
  Time now = start;

  Asked() {
    snapshot.size = 4;
    limits.max = 8;
    limits.sizes = {2, 4, 6};
  }
  Decision decide() { return policy.decide(snapshot, limits, now); }
  bool asks() {
    decide();
    return policy.question().has_value();
  }
};

}  // namespace

TEST_CASE("the program's name follows the colon") {
  CHECK(Exec::program_of("exec:./policy.sh --fast") == "./policy.sh --fast");
  CHECK(Exec::program_of("exec:a:b") == "a:b");
  CHECK_FALSE(Exec::program_of("fit"));
  CHECK_FALSE(Exec::program_of("exec"));
  CHECK(Autoscaler::check_policy("exec:./policy.sh").has_value());
  for (const char* missing : {"exec", "exec:", "exec: "})
    CHECK(Autoscaler::check_policy(missing).error().text ==
          "policy 'exec' needs a program that is asked, as in exec:./policy.sh");
  CHECK_FALSE(Autoscaler::check_policy("fit:./policy.sh").has_value());
}

TEST_CASE("the answer decides") {
  struct Case {
    Result<Advice> answer;
    int target;
    const char* reason;
    const char* trouble;
  };
  const char* const no_use = "its program gave no advice that can be followed";
  const Case cases[] = {
      {Advice{6, "it pays"}, 6, "growing from 4 to 6: it pays", ""},
      {Advice{2, ""}, 2, "shrinking from 4 to 2: its program says so", ""},
      {Advice{4, "far enough"}, 4, "far enough", ""},
      {Advice{4, ""}, 4, "staying at 4: its program says so", ""},
      {Advice{5, "odd"}, 4, no_use,
       "asked for a size that cannot be had: 5 is none of the sizes from 2 to 6"},
      {Advice{-1, ""}, 4, no_use,
       "asked for a size that cannot be had: -1 is none of the sizes from 2 to 6"},
      {Error{"was killed by signal 9"}, 4, no_use, "was killed by signal 9"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.reason);
    Asked asked;
    REQUIRE(asked.asks());
    const auto followed = asked.policy.advised(c.answer);
    CHECK((followed ? "" : followed.error().text) == c.trouble);
    for (int again = 0; again < 2; ++again) {
      const Decision made = asked.decide();
      CHECK(made.target == c.target);
      CHECK(made.reason == c.reason);
    }
  }
}

TEST_CASE("one question is asked at a time, with a pause between two") {
  for (const auto& [settle, pause] : {std::pair<Duration, Duration>{10s, 10s}, {0s, 1s}}) {
    Asked asked;
    asked.limits.settle = settle;
    CHECK(asked.decide().reason == "its program has not answered yet");
    CHECK(asked.decide().again == never);
    REQUIRE(asked.asks());
    asked.now += 1h;
    CHECK_FALSE(asked.asks());  // no answer yet
    const Time second = asked.now;
    CHECK(asked.policy.advised(Advice{4, ""}).has_value());
    CHECK(asked.asks());  // long after the first question
    CHECK(asked.policy.advised(Advice{4, ""}).has_value());
    CHECK(asked.decide().again == second + pause);
    asked.now = second + pause - 1ns;
    CHECK_FALSE(asked.asks());
    asked.now = second + pause;
    CHECK(asked.asks());
  }
}

TEST_CASE("advice holds until the next answer") {
  Asked asked;
  REQUIRE(asked.asks());
  CHECK(asked.policy.advised(Advice{6, ""}).has_value());
  asked.now += 1min;
  REQUIRE(asked.asks());
  CHECK(asked.decide().target == 6);
  CHECK_FALSE(asked.policy.advised(Error{"printed nothing"}).has_value());
  CHECK(asked.decide().target == 4);
}

TEST_CASE("advice for a situation that no longer exists does not count") {
  Asked asked;
  REQUIRE(asked.asks());
  SUBCASE("another size") { asked.snapshot.size = 2; }
  SUBCASE("other sizes to choose from") { asked.limits.sizes = {2, 4}; }
  CHECK(asked.policy.advised(Advice{6, ""}).has_value());
  CHECK(asked.decide().action == Action::stay);
  CHECK(asked.decide().reason == "its program has not answered yet");
  asked.now += 1min;
  CHECK(asked.asks());
  CHECK(asked.policy.advised(Advice{2, "now"}).has_value());
  CHECK(asked.decide().target == 2);
}

TEST_CASE("an answer without a question is ignored") {
  Asked asked;
  CHECK(asked.policy.advised(Advice{6, ""}).has_value());
  CHECK(asked.decide().target == 4);
}

TEST_CASE("the autoscaler asks after settling, and follows the answer") {
  Options options;
  options.policy = "exec:./policy.sh";
  options.limits.max = 8;
  options.limits.settle = 10s;
  options.limits.sizes = {2, 4, 6};
  Autoscaler scaler = Autoscaler::make(options).value();
  CHECK(scaler.policy() == "exec");
  CHECK(scaler.decide(start).reason == "no world yet");
  CHECK_FALSE(scaler.question());
  scaler.world_changed(Generation(1), 4, 64, start);
  scaler.decide(start + 9s);
  CHECK_FALSE(scaler.question());  // still settling
  scaler.decide(start + 10s);
  const auto question = scaler.question();
  REQUIRE(question);
  CHECK(question->snapshot.size == 4);
  CHECK_FALSE(scaler.question());  // each question is handed out once
  CHECK(scaler.wake_at() == never);
  CHECK(scaler.advised(Advice{6, "go"}).has_value());
  CHECK(scaler.wake_at() <= start);
  CHECK(scaler.decide(start + 11s).target == 6);
  // The size could not be reached. The advice is unchanged, but the retry delay holds it back.
  scaler.change_started(start + 11s);
  scaler.change_ended(start + 12s);
  CHECK(scaler.decide(start + 22s).reason.starts_with("6 could not be reached"));
}
