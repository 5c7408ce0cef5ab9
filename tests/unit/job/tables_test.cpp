// The tables that a job is made of: phases, deadlines, and the text of an event.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "job/core/course/phase.hpp"
#include "job/deadlines.hpp"
#include "job/report/event.hpp"

namespace elasticrun::job {
namespace {

using namespace std::chrono_literals;

constexpr course::Phase all_phases[] = {course::Phase::starting,  course::Phase::training,
                                        course::Phase::reforming, course::Phase::short_of,
                                        course::Phase::trained,   course::Phase::stopping,
                                        course::Phase::closing,   course::Phase::ended};

TEST_CASE("each phase has at most one transition per event") {
  std::set<std::pair<course::Phase, course::PhaseEvent>> seen;
  for (const course::PhaseTransition& t : course::phase_transitions)
    CHECK(seen.emplace(t.from, t.turn).second);
}

TEST_CASE("every phase can be reached, and ends when the job is told to stop") {
  std::set<course::Phase> reached{course::Phase::starting};
  for (std::size_t round = 0; round < std::size(all_phases); ++round)
    for (const course::PhaseTransition& t : course::phase_transitions)
      if (reached.contains(t.from)) reached.insert(t.to);
  for (const course::Phase phase : all_phases) {
    CAPTURE(to_text(phase));
    CHECK(reached.contains(phase));
    course::Phase at = next(phase, course::PhaseEvent::stop);
    at = next(at, course::PhaseEvent::workers_gone);
    CHECK(next(at, course::PhaseEvent::agents_gone) == course::Phase::ended);
  }
}

TEST_CASE("nothing leads out of the phase ended, nor back from stopping") {
  for (const course::PhaseTransition& t : course::phase_transitions) {
    CHECK(t.from != course::Phase::ended);
    if (t.from >= course::Phase::stopping) CHECK(t.to > t.from);
  }
  CHECK(next(course::Phase::stopping, course::PhaseEvent::world_broken) == course::Phase::stopping);
}

TEST_CASE("the defaults are consistent, and equal to those in the table") {
  CHECK(check(Deadlines{}).has_value());
  const Deadlines defaults;
  for (const DeadlineRow& row : deadline_table) {
    CAPTURE(row.name);
    const auto standard = parse_duration(row.standard);
    REQUIRE(standard.has_value());
    CHECK(*standard == defaults.*row.member);
    const auto named = std::ranges::count(deadline_table, row.shorter_than, &DeadlineRow::name);
    CHECK(named == (row.shorter_than.empty() ? 0 : 1));
  }
}

TEST_CASE("each rule of order is enforced, and the error names both options") {
  for (const DeadlineRow& row : deadline_table) {
    if (row.shorter_than.empty()) continue;
    CAPTURE(row.name);
    const auto other = std::ranges::find(deadline_table, row.shorter_than, &DeadlineRow::name);
    Deadlines wrong;
    wrong.*row.member = wrong.*other->member;
    const auto valid = check(wrong);
    REQUIRE(valid.has_error());
    const std::string& mistake = valid.error().text;
    CHECK(mistake.starts_with("--" + std::string(row.name) + ": "));
    CHECK(mistake.find("--" + std::string(other->name)) != std::string::npos);
  }
}

TEST_CASE("a deadline of zero is an error, except where zero means at once") {
  for (const DeadlineRow& row : deadline_table) {
    CAPTURE(row.name);
    Deadlines none;
    none.*row.member = 0s;
    CHECK(check(none).has_value() == may_be_zero(row.name));
  }
}

TEST_CASE("an event is one line of JSON, whatever it contains") {
  const report::Event event{"odd \"name\"",
                            {{"whole", std::int64_t{-3}},
                             {"half", 0.5},
                             {"large", 1e300},
                             {"none", std::nan("")},
                             {"endless", INFINITY},
                             {"yes", true},
                             {"text", std::string("a\"b\\c\nd\te\x01 \xc3\xa4")},
                             {"list", std::vector<std::string>{"x", "\"y\""}},
                             {"empty", std::vector<std::string>{}}}};
  CHECK(report::to_json(event, "2026-01-02T03:04:05.678Z") ==
        R"({"time":"2026-01-02T03:04:05.678Z","event":"odd \"name\"","whole":-3,"half":0.5,)"
        R"("large":1e+300,"none":null,"endless":null,"yes":true,)"
        "\"text\":\"a\\\"b\\\\c\\u000ad\\u0009e\\u0001 \xc3\xa4\","
        R"("list":["x","\"y\""],"empty":[]})");
  CHECK(report::to_json({"e", {{"n", std::string("gr\xc3\xbcn")}}}, "t") ==
        "{\"time\":\"t\",\"event\":\"e\",\"n\":\"gr\xc3\xbcn\"}");
  CHECK(report::to_json({"e", {{"n", std::string("a\xff\xc3")}}}, "t") ==
        R"({"time":"t","event":"e","n":"a\ufffd\ufffd"})");
  CHECK(report::to_json({"e", {{"n", std::string(1 << 20, 'x')}}}, "t").size() < 70'000);
  CHECK(report::to_json({"e", {{"n", std::int64_t{1}}}}, "t", "a\"b") ==
        R"({"time":"t","event":"e","job":"a\"b","n":1})");
}

}  // namespace
}  // namespace elasticrun::job
