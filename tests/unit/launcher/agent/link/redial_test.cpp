// When an agent dials again, and when it considers its controller gone.
#include "launcher/agent/link/redial.hpp"

#include <doctest/doctest.h>

using namespace elasticrun;
using elasticrun::launcher::agent::link::Redial;
using namespace std::chrono_literals;

namespace {

const Time begin = Time{} + 1h;

}  // namespace

TEST_CASE("the agent dials again at once, and then after growing pauses") {
  Redial redial;
  CHECK(redial.dial_at() == never);
  redial.lost(begin);
  CHECK(redial.dial_at() == begin);
  Duration at = 0s;
  for (const Duration pause : {20ms, 40ms, 80ms, 160ms, 320ms, 640ms, 1000ms, 1000ms}) {
    redial.dialled();
    CHECK(redial.dial_at() == never);
    redial.failed(false, begin + at);
    CHECK(redial.dial_at() == begin + at + pause);
    CHECK_FALSE(redial.controller_gone());
    at += pause;
  }
  redial.dialled();
  redial.connected();
  CHECK(redial.dial_at() == never);
  redial.lost(begin + 1h);
  redial.failed(false, begin + 1h);
  CHECK(redial.dial_at() == begin + 1h + 20ms);
}

TEST_CASE("a port that stays closed means that the controller is gone") {
  Redial redial;
  redial.lost(begin);
  redial.failed(true, begin + 1ms);
  redial.failed(true, begin + 500ms);
  CHECK_FALSE(redial.controller_gone());
  redial.failed(true, begin + 501ms);
  CHECK(redial.controller_gone());
  CHECK(redial.dial_at() == never);
}

TEST_CASE("neither timeouts nor a single refusal prove that the controller is gone") {
  Redial redial;
  redial.lost(begin);
  for (int second = 1; second < 60; ++second) {
    redial.failed(second % 3 == 0, begin + std::chrono::seconds(second));
    CHECK_FALSE(redial.controller_gone());
  }
  redial.failed(true, begin + 60s);
  redial.failed(true, begin + 61s);
  CHECK(redial.controller_gone());
}

TEST_CASE("the first attempts have short timeouts, since a first packet may be lost") {
  Redial redial;
  redial.lost(begin);
  for (const Duration time : {200ms, 400ms, 800ms, 1600ms, 3200ms, 5000ms, 5000ms}) {
    CHECK(redial.attempt_time() == time);
    redial.failed(false, begin);
  }
  redial.lost(begin);
  CHECK(redial.attempt_time() == 200ms);
}
