// Hosts that die, are revoked, or are slow for a while, and how the job copes.
#include <doctest/doctest.h>

#include "simulate/what_if/fleet.hpp"
#include "simulate/what_if/what_if.hpp"

using namespace elasticrun;
using namespace elasticrun::simulate::what_if;
using namespace std::chrono_literals;

namespace {

// Hosts with two workers of 100 samples/s each; a step is all compute.
Curve hosts(int count) {
  std::string text =
      "samples: 1e9\nbatch: 10\nslots-per-host: 2\ncolumns: size samples/s compute\n";
  for (int host = 1; host <= count; ++host)
    text += std::to_string(2 * host) + " " + std::to_string(200 * host) + " 1\n";
  return Curve::parse(text, "hosts").value();
}

Outcome stays(const Curve& on, const Conditions& conditions, std::uint64_t seed = 1) {
  Question question;
  question.policy = "fixed";
  question.seed = seed;
  return answer(on, conditions, question).value();
}

const Conditions a_day{.start = 20s, .idle = 1s, .limit = 24h, .recovery = 5s, .new_host = 60s};

}  // namespace

TEST_CASE("workers of a fleet follow its hosts") {
  const Curve on = hosts(2);
  Fleet fleet(on.hosts(), 3);
  CHECK(fleet.offers({2, 4})[1].price == 12);
  CHECK(fleet.offers({2, 4})[1].hosts == 2);
  for (const WorkerId worker : fleet.start(4, Time{})) fleet.ready(worker, Time{});
  fleet.enter(fleet.proposal(4, Time{}).value());
  CHECK(fleet.members().size() == 4);
  CHECK_FALSE(fleet.proposal(4, Time{}));  // the world is as it should be
  CHECK(fleet.costs().workers == 4);
  CHECK(fleet.costs().per_hour == 12);

  fleet.list(0, false);
  CHECK(fleet.proposal(4, Time{})->size() == 2);  // no other slots: continue with fewer
  CHECK(fleet.lose(0) == 2);
  CHECK(fleet.members().size() == 2);
  CHECK_FALSE(fleet.has_workers(0));

  fleet.list(0, true);
  const auto started = fleet.start(4, Time{});
  CHECK(started.size() == 2);
  CHECK(fleet.starting());
  CHECK_FALSE(fleet.proposal(4, Time{}));  // the new workers are not ready yet
  for (const WorkerId worker : started) fleet.ready(worker, Time{});
  CHECK(fleet.proposal(4, Time{})->size() == 4);
  fleet.set_speed(0, 0.5);
  CHECK(fleet.speed(started.front()) == 0.5);
}

TEST_CASE("a revocation with notice costs two planned changes and no loss") {
  Conditions sudden = a_day;
  sudden.revoked_per_hour = 0.25;
  Conditions noticed = sudden;
  noticed.notice = 2min;
  const Outcome without = stays(hosts(8), sudden);
  const Outcome with = stays(hosts(8), noticed);
  CHECK(without.revoked > 30);
  CHECK(with.revoked > 30);
  CHECK(with.failures == 0);
  // Without notice a host is away for 80 s plus two changes; with notice, for 120 s plus two
  // changes.
  const double all = 24 * 3600 * 1600;
  CHECK(without.samples < all * (1 - without.revoked * 80 / 8.0 / 86400));
  CHECK(with.samples > all * (1 - with.revoked * (150 / 8.0 + 3) / 86400));
  CHECK(with.size == 16);
}

TEST_CASE("a spare replaces a lost worker without waiting for a start") {
  Conditions failing = a_day;
  failing.failures_per_hour = 0.25;
  Conditions spared = failing;
  spared.spares = 2;
  const Outcome without = stays(hosts(8), failing);
  const Outcome with = stays(hosts(8), spared);
  // Without spares, an eighth of the workers is missing for 80 s per loss; with spares, the job
  // pauses for 6 s.
  CHECK(with.samples > without.samples);
  CHECK(with.cost > without.cost);
}

TEST_CASE("a slow host is found, and replaced where a slot is free") {
  Conditions slow = a_day;
  slow.slow_per_hour = 0.05;
  slow.slow_speed = 0.5;
  slow.slow_time = 1h;
  slow.spares = 2;
  slow.noise = 0.2;
  slow.shares_by_speed = false;
  Conditions off = slow;
  off.stragglers = job::StragglerAction::off;
  Conditions report = slow;
  report.stragglers = job::StragglerAction::report;
  const Outcome fine = stays(hosts(8), a_day);
  const Outcome replaced = stays(hosts(8), slow);
  const Outcome reported = stays(hosts(8), report);
  const Outcome ignored = stays(hosts(8), off);
  CHECK(ignored.slow_phases > 3);
  CHECK(ignored.stragglers == 0);
  CHECK(reported.stragglers > 3);
  CHECK(reported.replaced == 0);
  CHECK(replaced.replaced > 3);
  CHECK(ignored.samples < 0.9 * fine.samples);
  CHECK(reported.samples == doctest::Approx(ignored.samples).epsilon(0.02));
  // A slow host is found after half a minute and ten steps; further losses come from two slow hosts
  // at once.
  CHECK(replaced.samples > 1.1 * ignored.samples);
  CHECK_FALSE(replaced.notes.empty());
}

TEST_CASE("a slow host that cannot be replaced gets a smaller share") {
  Conditions equal = a_day;
  equal.slow_per_hour = 0.05;
  equal.slow_speed = 0.5;
  equal.slow_time = 1h;
  equal.shares_by_speed = false;
  Conditions by_speed = equal;
  by_speed.shares_by_speed = true;
  const Outcome alike = stays(hosts(8), equal);
  const Outcome shared = stays(hosts(8), by_speed);
  CHECK(alike.slow_phases > 3);
  // With equal shares throughput is halved while one host is slow; with shares by speed it drops by
  // a sixteenth.
  CHECK(shared.samples > 1.1 * alike.samples);
}

TEST_CASE("steps of varying length do not make a straggler") {
  Conditions noisy = a_day;
  noisy.noise = 0.2;
  noisy.slow_per_hour = 1e-9;
  noisy.spares = 2;
  CHECK(stays(hosts(8), noisy).stragglers == 0);
}

TEST_CASE("failures of hosts are the same for two policies") {
  Conditions failing = a_day;
  failing.failures_per_hour = 0.1;
  failing.noise = 0.2;
  Question question;
  question.policy = "fixed";
  const Outcome one = answer(hosts(8), failing, question).value();
  question.policy = "throughput-walk";
  const Outcome other = answer(hosts(8), failing, question).value();
  REQUIRE_FALSE(one.notes.empty());
  REQUIRE_FALSE(other.notes.empty());
  CHECK(one.notes.front().text == other.notes.front().text);
}

TEST_CASE("a job that loses its last host ends, whatever else happens to it") {
  Conditions harsh = a_day;
  harsh.noise = 0.2;
  harsh.slow_per_hour = 0.5;
  harsh.report = 20s;
  harsh.limit = 3h;
  const Curve on = Curve::parse(
                       "samples: 10000000\ncolumns: size seconds\n1 86956\n2 47619\n4 25252\n"
                       "10 11086\n20 5945\n30 4355\n40 3465\n49 3100\n",
                       "one worker a host")
                       .value();
  int lost = 0;
  for (const char* policy : {"fixed", "throughput", "fit"})
    for (const bool noticed : {false, true})
      for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        CAPTURE(policy);
        CAPTURE(seed);
        Conditions conditions = harsh;
        (noticed ? conditions.revoked_per_hour : conditions.failures_per_hour) = 0.5;
        if (noticed) conditions.notice = 30s;
        Question question;
        question.policy = policy;
        question.start = 1;
        question.seed = seed;
        const Outcome outcome = answer(on, conditions, question).value();
        CHECK((outcome.done || outcome.size == 0 || outcome.seconds >= 3 * 3600));
        lost += outcome.size == 0;
        if (outcome.size == 0) CHECK(outcome.reason == "state lost: the last host was lost");
      }
  CHECK(lost > 30);
}
