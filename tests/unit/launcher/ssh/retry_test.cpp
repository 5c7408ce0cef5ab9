// Which host is tried when: limits, pauses, giving up.
#include "launcher/ssh/retry.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace elasticrun::launcher::ssh {
namespace {

using namespace std::chrono_literals;

// "try 1, try 2, over 3 reason"
std::string text(const std::vector<Attempts::Action>& actions) {
  std::string result;
  for (const Attempts::Action& action : actions) {
    if (!result.empty()) result += ", ";
    if (const auto* attempt = std::get_if<Attempts::Attempt>(&action))
      result += fmt::format("try {}", attempt->host.value);
    if (const auto* over = std::get_if<Attempts::GiveUp>(&action))
      result += fmt::format("over {} {}", over->host.value, over->reason);
  }
  return result;
}

struct Bench {
  Attempts attempts;
  Time now{};

  explicit Bench(const RetryLimits& limits = {}, std::uint64_t seed = 1) : attempts(limits, seed) {}
  std::string wanted(unsigned host) {
    return text(attempts.step(Attempts::Wanted{HostId(host)}, now));
  }
  std::string started(unsigned host) {
    return text(attempts.step(Attempts::Started{HostId(host)}, now));
  }
  std::string unwanted(unsigned host) {
    return text(attempts.step(Attempts::Unwanted{HostId(host)}, now));
  }
  std::string failed(unsigned host, Retry retry) {
    return text(attempts.step(Attempts::Failed{HostId(host), {"bad", retry}}, now));
  }
  std::string wait() {
    REQUIRE(attempts.wake_at() != never);
    now = attempts.wake_at();
    return text(attempts.step(Attempts::PauseOver{}, now));
  }
};

TEST_CASE("hosts are tried in order, and not more at once than the limit") {
  Bench bench({.in_flight = 2});
  CHECK(bench.wanted(1) == "try 1");
  CHECK(bench.wanted(2) == "try 2");
  CHECK(bench.wanted(3).empty());
  CHECK(bench.wanted(4).empty());
  CHECK(bench.wanted(5).empty());
  CHECK(bench.started(2) == "try 3");
  CHECK(bench.unwanted(4).empty());  // it was still waiting
  CHECK(bench.unwanted(1) == "try 5");
  CHECK(bench.failed(3, Retry::never) == "over 3 bad");
  CHECK(bench.attempts.wake_at() == never);
}

TEST_CASE("a permanent trouble is reported at once") {
  Bench bench;
  CHECK(bench.wanted(1) == "try 1");
  CHECK(bench.failed(1, Retry::never) == "over 1 bad");
  CHECK(bench.wanted(1) == "try 1");  // it may be wanted again
}

TEST_CASE("a temporary trouble is tried again, and reported with the number of attempts") {
  Bench bench({.brief_attempts = 3});
  bench.wanted(1);
  CHECK(bench.failed(1, Retry::briefly).empty());
  CHECK(bench.wait() == "try 1");
  CHECK(bench.failed(1, Retry::briefly).empty());
  CHECK(bench.wait() == "try 1");
  CHECK(bench.failed(1, Retry::briefly) == "over 1 bad (3 attempts)");
}

TEST_CASE("a host in a pause takes up no place, and can be unwanted") {
  Bench bench({.in_flight = 1});
  bench.wanted(1);
  CHECK(bench.wanted(2).empty());
  CHECK(bench.failed(1, Retry::throttled) == "try 2");
  CHECK(bench.wait().empty());  // host 1 waits for host 2 now
  CHECK(bench.started(2) == "try 1");
  CHECK(bench.failed(1, Retry::throttled).empty());
  CHECK(bench.unwanted(1).empty());
  CHECK(bench.attempts.wake_at() == never);
}

TEST_CASE("pauses double up to the longest, and vary by half of their length") {
  const RetryLimits limits{.throttled_attempts = 12, .first_pause = 100ms, .longest_pause = 1s};
  Bench bench(limits);
  bench.wanted(1);
  Duration nominal = 100ms;
  for (int attempt = 1; attempt < limits.throttled_attempts; ++attempt) {
    CHECK(bench.failed(1, Retry::throttled).empty());
    const Duration pause = bench.attempts.wake_at() - bench.now;
    CHECK(pause >= nominal / 2);
    CHECK(pause < nominal * 3 / 2);
    CHECK(bench.wait() == "try 1");
    nominal = std::min<Duration>(2 * nominal, 1s);
  }
  CHECK(bench.failed(1, Retry::throttled) == "over 1 bad (12 attempts)");
}

TEST_CASE("hosts that were refused together do not retry together") {
  Bench bench;
  for (unsigned host = 1; host <= 20; ++host) bench.wanted(host);
  for (unsigned host = 1; host <= 20; ++host) bench.failed(host, Retry::throttled);
  int wakes = 0;
  for (; bench.attempts.wake_at() != never; ++wakes) bench.wait();
  CHECK(wakes == 20);
}

TEST_CASE("each stage has a deadline") {
  const StageLimits limits{.connect = 1s, .login = 2s, .shell = 3s, .copy = 4s};
  CHECK(deadline_of(Stage::config, limits) == 1s);
  CHECK(deadline_of(Stage::greeting, limits) == 1s);
  CHECK(deadline_of(Stage::login, limits) == 2s);
  CHECK(deadline_of(Stage::run, limits) == 3s);
  CHECK(deadline_of(Stage::copy, limits) == 4s);
}

}  // namespace
}  // namespace elasticrun::launcher::ssh
