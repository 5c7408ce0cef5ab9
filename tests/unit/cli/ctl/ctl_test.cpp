// elasticctl simulate as a function: the arguments it accepts and what it prints.
#include <doctest/doctest.h>

#include <algorithm>

#include "cli/ctl/options.hpp"
#include "cli/ctl/simulate_command.hpp"

using namespace elasticrun;
using namespace elasticrun::cli;
using namespace elasticrun::cli::ctl;
using namespace std::chrono_literals;

namespace {

auto parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "elasticctl");
  return parse_ctl(static_cast<int>(arguments.size()), arguments.data());
}

simulate::what_if::Curve two() {
  return simulate::what_if::Curve::parse(
             "title: two\nsamples: 10000\nmax-batch: 10\ncolumns: size samples/s\n1 100\n2 200\n",
             "two")
      .value();
}

}  // namespace

TEST_CASE("flags of simulate") {
  const auto parsed =
      parse({"simulate", "--curve",    "c",   "--policy", "fit", "--start",      "4",   "--seed",
             "9",        "--seeds",    "3",   "--noise",  "0.2", "--start-time", "31s", "--idle",
             "250ms",    "--failures", "0.1", "--price",  "2",   "--limit",      "24h", "--settle",
             "5s",       "--min-gain", "0.3", "--json"});
  const auto& command = std::get<SimulateCommand>(parsed.value());
  CHECK(command.curve == "c");
  CHECK(command.question.policy == "fit");
  CHECK(command.question.start == 4);
  CHECK(command.question.seed == 9);
  CHECK(command.seeds == 3);
  CHECK(command.conditions.noise == 0.2);
  CHECK(command.conditions.start == simulate::what_if::Span(31s));
  CHECK(command.conditions.idle == 250ms);
  CHECK(command.conditions.limit == 24h);
  CHECK(command.question.limits.settle == 5s);
  CHECK(command.question.limits.min_gain == 0.3);
  CHECK(command.json);
}

TEST_CASE("flags for failures of hosts, and for aims") {
  const auto parsed =
      parse({"simulate", "--curve",      "c",    "--start-time", "15s:31s", "--revoked",
             "0.1",      "--notice",     "30s",  "--new-host",   "45s",     "--slow-hosts",
             "0.5",      "--slow-speed", "0.25", "--slow-time",  "5m",      "--stragglers",
             "report",   "--spares",     "2",    "--deadline",   "2h"});
  const auto& command = std::get<SimulateCommand>(parsed.value());
  CHECK(command.conditions.start == simulate::what_if::Span(15s, 31s));
  CHECK(command.conditions.revoked_per_hour == 0.1);
  CHECK(command.conditions.notice == 30s);
  CHECK(command.conditions.new_host == 45s);
  CHECK(command.conditions.slow_per_hour == 0.5);
  CHECK(command.conditions.slow_speed == 0.25);
  CHECK(command.conditions.slow_time == 5min);
  CHECK(command.conditions.stragglers == job::StragglerAction::report);
  CHECK(command.conditions.spares == 2);
  CHECK(command.question.aims.deadline == 2h);
  CHECK(command.question.policy == "deadline");
  const auto other = parse({"simulate", "--curve", "c", "--budget", "12.5"});
  CHECK(std::get<SimulateCommand>(other.value()).question.policy == "budget");
  const auto third = parse({"simulate", "--curve", "c", "--utility", "1h:100,2h:40"});
  CHECK(std::get<SimulateCommand>(third.value()).question.policy == "utility");
  CHECK(std::get<SimulateCommand>(third.value()).question.aims.utility.size() == 2);
}

TEST_CASE("flags of plan") {
  const auto parsed = parse({"plan", "job.jsonl", "--sizes", "1,2,8", "--samples", "1e6", "--price",
                             "3", "--hosts", "h", "--budget", "7", "--json", "--job", "1a2b"});
  const auto& command = std::get<PlanCommand>(parsed.value());
  CHECK(command.events == "job.jsonl");
  CHECK(command.job == "1a2b");
  CHECK(command.sizes == std::vector<int>{1, 2, 8});
  CHECK(command.samples == 1e6);
  CHECK(command.price == 3);
  CHECK(command.hosts == "h");
  CHECK(command.aims.budget == 7);
  CHECK(command.policy == "budget");
  CHECK(command.json);
}

TEST_CASE("--help and --version are answered, and mistakes are one line") {
  CHECK(std::get<std::string>(parse({"simulate", "--help"}).value()).find("--curve") !=
        std::string::npos);
  CHECK(std::get<std::string>(parse({"--version"}).value()).starts_with("elasticctl "));
  for (const auto& wrong :
       std::vector<std::vector<const char*>>{{},
                                             {"simulate"},
                                             {"simulate", "--curve", "c", "--noise", "-1"},
                                             {"simulate", "--curve", "c", "--idle", "5"},
                                             {"simulate", "--curve", "c", "--start-time", "9s:5s"},
                                             {"simulate", "--curve", "c", "--stragglers", "shoot"},
                                             {"simulate", "--curve", "c", "--utility", "soon"},
                                             {"simulate", "--curve", "c", "--noise", "nan"},
                                             {"simulate", "--curve", "c", "--failures", "nan"},
                                             {"simulate", "--curve", "c", "--slow-hosts", "inf"},
                                             {"simulate", "--curve", "c", "--slow-speed", "nan"},
                                             {"simulate", "--curve", "c", "--price", "nan"},
                                             {"simulate", "--curve", "c", "--budget", "inf"},
                                             {"simulate", "--curve", "c", "--min-gain", "nan"},
                                             {"plan"},
                                             {"plan", "events", "--sizes", "1,0"},
                                             {"simulate", "--curve", "c", "--colour", "red"},
                                             {"dance"}}) {
    const auto parsed = parse(wrong);
    REQUIRE(parsed.has_error());
    CHECK(parsed.error().text.find('\n') == std::string::npos);
    CHECK(parsed.error().text.ends_with("(see elasticctl --help)"));
  }
}

TEST_CASE("one seed is printed as text") {
  SimulateCommand command;
  command.question.policy = "fit";
  command.question.start = 1;
  command.conditions.start = 10s;
  command.conditions.idle = 1s;
  CHECK(
      simulate_command(command, two()).value().text ==
      "two: 2 sizes from 1 to 2, best is 2 (50.0 s, 0.0 worker hours)\n"
      "policy fit, 0 % noise\n"
      "      10.0 s  1 -> 2  1 worker brings 100 samples/s, 2 promise 100 to 200: growing to 2 to "
      "measure\n"
      "     1 m 1 s  ends at 2  staying at 2: 200 samples/s, 1 brought 100 samples/s, -46 % at a "
      "weight of 0.10 on workers\n"
      "time         1 m 1 s (+22.0 % against the best size)\n"
      "worker hours 0.03 (+12.0 % against the best size)\n"
      "cost         0.03 (+12.0 % against the best size)\n"
      "moves        1, the last one after 21.0 s; within 5 % of the best size after 21.0 s\n");
}

TEST_CASE("one seed is printed as events, and many seeds as a table") {
  SimulateCommand command;
  command.question.policy = "throughput";
  command.question.start = 1;
  command.json = true;
  const std::string one = simulate_command(command, two()).value().text;
  CHECK(
      one.starts_with("{\"time\":\"1970-01-01T00:00:10.000Z\",\"event\":\"decision\",\"policy\":"
                      "\"throughput\",\"action\":\"grow\",\"from\":1,\"target\":2,"));
  CHECK(one.find("\"event\":\"job_finished\"") != std::string::npos);
  command.seeds = 3;
  const std::string three = simulate_command(command, two()).value().text;
  CHECK(std::count(three.begin(), three.end(), '\n') == 3);
  command.json = false;
  const std::string table = simulate_command(command, two()).value().text;
  CHECK(table.find("3 seeds") != std::string::npos);
  CHECK(table.find("moves                        1.00       1.00       1.00       1.00") !=
        std::string::npos);
}
