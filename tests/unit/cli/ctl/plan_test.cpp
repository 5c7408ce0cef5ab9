// elasticctl plan as a function: the table and the promise, from an event log and a host file.
#include "cli/ctl/plan_command.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "job/report/event_log.hpp"

using namespace elasticrun;
using namespace elasticrun::cli;
using namespace elasticrun::cli::ctl;
using namespace std::chrono_literals;

namespace {

// A run with 1 and 2 workers on one host: 100 and `at_two` samples/s, 7200 samples in all.
std::string log_of(bool whole, double at_two = 180, const std::string& job = "") {
  std::string log = R"({"time":"t","event":"job_started","policy":"fit","slots":4})"
                    "\n";
  int step = 0;
  const auto world = [&](int generation, int size, double rate) {
    log += fmt::format(R"({{"time":"t","event":"world_formed","generation":{},"size":{},)"
                       R"("hosts":["a"],"step":{},"global_batch":36}})"
                       "\n",
                       generation, size, step);
    for (int i = 0; i < 10; ++i)
      log += fmt::format(
          R"({{"time":"t","event":"sample","generation":{},"step":{},"samples_per_s":{},)"
          R"("global_batch":36,"step_ms":{},"compute_ms":{}}})"
          "\n",
          generation, step += 10, rate, 36000 / rate, 30000.0 / size / 100);
  };
  world(1, 1, 100);
  world(2, 2, at_two);
  if (whole)
    log += R"({"time":"end","event":"job_finished","exit_code":0,"steps":200})"
           "\n";
  if (job.empty()) return log;
  const std::string id = R"("job":")" + job + R"(",)";
  for (std::size_t at = 0; at < log.size(); at = log.find('\n', at) + 1) log.insert(at + 1, id);
  return log;
}

std::vector<job::report::Event> run(bool whole = true) {
  return job::report::read_events(log_of(whole), "log").value();
}

std::string plan(const PlanCommand& command, const std::string& hosts = "") {
  std::vector<launcher::hosts::Host> parsed;
  if (!hosts.empty()) parsed = launcher::hosts::parse_hosts(hosts, "hosts").value();
  const auto report = plan_command(command, run(), parsed);
  return report ? report->text : report.error().text;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("the table shows what was measured and predicted, and marks the best size") {
  const std::string text = plan({.sizes = {1, 2, 4}, .price = 3600});
  CHECK(text.starts_with("7200 samples, from a run that trained 7200 of them at 1, 2\n"));
  CHECK(has(text, "     1      1  100                1 m 12 s"));
  CHECK(has(text, "     2      1  180                40.0 s"));
  CHECK(has(text, "80.00              measured\n"));
  CHECK(has(text, "predicted\n"));
  CHECK(has(text, "* best at a weight of 0.10 on workers\n"));
  CHECK(std::count(text.begin(), text.end(), '*') == 2);
}

TEST_CASE("a deadline and a budget mark another size, and the text says whether they can be met") {
  const auto best = [](const std::string& text) {
    const auto star = text.find("\n* ");
    return std::stoi(text.substr(star + 2));
  };
  PlanCommand command{.sizes = {1, 2}, .price = 3600, .policy = "deadline"};
  command.aims.deadline = 100s;
  CHECK(best(plan(command)) == 1);
  CHECK(has(plan(command), "the deadline of 1 m 40 s can be met"));
  command.aims.deadline = 50s;
  CHECK(best(plan(command)) == 2);
  command.aims.deadline = 20s;
  CHECK(has(plan(command), "the deadline of 20.0 s cannot be met: 40.0 s"));
  command.policy = "budget";
  command.aims = {.budget = 75};
  CHECK(best(plan(command)) == 1);
  command.aims = {.budget = 100};
  CHECK(best(plan(command)) == 2);
}

TEST_CASE("a host file gives the possible sizes and their prices") {
  const std::string text = plan({}, "a slots=2 price=7200\nb slots=2 price=3600\n");
  CHECK(has(text, "     2      1  180                40.0 s                       80.0"));
  CHECK(has(text, "     4      2  "));
  CHECK_FALSE(has(text, "\n       3 "));
  CHECK(plan({.sizes = {8}}, "a slots=2\n") == "--sizes 8: the hosts have 2 slots");
}

TEST_CASE("a plan can be printed as events, and made from a run that was cut off") {
  PlanCommand command{
      .sizes = {1, 2}, .samples = 18000, .price = 3600, .policy = "deadline", .json = true};
  command.aims.deadline = 1h;
  const auto events = job::report::read_events(plan(command), "plan").value();
  REQUIRE(events.size() == 3);
  CHECK(events[0].name == "size");
  CHECK(job::report::number(events[0], "wall_s_low") == 180);
  CHECK(job::report::number(events[1], "cost_high") == 200);
  CHECK(events[2].name == "promise");
  const auto cut = plan_command({.events = "log"}, run(false), {});
  CHECK(has(cut->text, "from a run that was cut off after 7200 of them at 1, 2"));
}

TEST_CASE("several runs in one file are kept apart, and one of them is chosen") {
  const std::string empty = R"({"event":"job_started","job":"e"})"
                            "\n"
                            R"({"event":"job_finished","job":"e","exit_code":0})"
                            "\n";
  const auto whole = [](const char* job, double rate) { return log_of(true, rate, job); };
  const auto cut = [](const char* job, double rate) { return log_of(false, rate, job); };
  struct Case {
    std::string log, job;
    const char* begins;  // how the printed text begins
    const char* rate;    // samples/s with two workers
  };
  const Case cases[] = {
      {whole("a", 180), "", "7200 samples, from job a that trained 7200 of them at 1, 2\n  ",
       "180"},
      {whole("a", 180) + whole("b", 150), "",
       "7200 samples, from job b that trained 7200 of them at 1, 2\n"
       "log has 2 runs: a, b; this is the last that came to its end; --job takes another\n",
       "150"},
      {whole("a", 180) + whole("b", 150), "a",
       "7200 samples, from job a that trained 7200 of them at 1, 2\n  ", "180"},
      // A run that was stopped or has measured nothing does not hide one that came to its end.
      {whole("a", 180) + cut("b", 150) + empty, "",
       "7200 samples, from job a that trained 7200 of them at 1, 2\n"
       "log has 3 runs: a, b, e; this is the last that came to its end; --job takes another\n",
       "180"},
      {whole("a", 180) + cut("b", 150), "b",
       "7200 samples, from job b that was cut off after 7200 of them at 1, 2\n  ", "150"},
      {cut("a", 180) + cut("b", 150) + empty, "",
       "7200 samples, from job b that was cut off after 7200 of them at 1, 2\n"
       "log has 3 runs: a, b, e; this is the last that measured anything; --job takes another\n",
       "150"},
      // Older versions wrote no job id.
      {log_of(true, 180) + log_of(true, 150), "",
       "7200 samples, from a run that trained 7200 of them at 1, 2\n"
       "log has 2 runs: ?, ?; this is the last that came to its end; --job takes another\n",
       "150"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.log);
    CAPTURE(c.job);
    const PlanCommand command{.events = "log", .job = c.job, .sizes = {1, 2}};
    const auto report = plan_command(command, job::report::read_events(c.log, "log").value(), {});
    REQUIRE(report.has_value());
    CHECK(report->text.substr(0, std::string(c.begins).size()) == c.begins);
    CHECK(has(report->text, fmt::format("     2      1  {} ", c.rate)));
  }
  const auto error = [&](const std::string& log, const char* job) {
    const PlanCommand command{.events = "log", .job = job};
    return plan_command(command, job::report::read_events(log, "log").value(), {}).error().text;
  };
  CHECK(error(whole("a", 180) + whole("b", 150), "c") == "--job c: log has no such job, but a, b");
  CHECK(error(whole("a", 180) + empty, "e").starts_with("log: job e: no size was measured in it"));
  CHECK(error(empty + empty, "").starts_with("log: no size was measured in it"));
  const PlanCommand json{.events = "log", .sizes = {1}, .json = true};
  const auto events = job::report::read_events(whole("a", 180), "log").value();
  CHECK(has(plan_command(json, events, {})->text, R"("event":"size","job":"a",)"));
}

TEST_CASE("a run without measurements is an error") {
  const auto events = job::report::read_events(R"({"event":"job_started"})", "x").value();
  CHECK(plan_command({.events = "log"}, events, {}).error().text ==
        "log: no size was measured in it: the job was too short, or its program does not use the "
        "library");
}
