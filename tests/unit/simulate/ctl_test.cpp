// elasticctl simulate as a function: what it understands and what it prints.
#include <doctest/doctest.h>

#include <algorithm>

#include "cli/ctl_options.hpp"
#include "cli/simulate_command.hpp"

using namespace elasticrun;
using namespace elasticrun::cli;
using namespace std::chrono_literals;

namespace {

auto parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "elasticctl");
  return parse_ctl(static_cast<int>(arguments.size()), arguments.data());
}

simulate::Curve two() {
  return simulate::Curve::parse(
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
  CHECK(command.conditions.start == 31s);
  CHECK(command.conditions.idle == 250ms);
  CHECK(command.conditions.limit == 24h);
  CHECK(command.question.limits.settle == 5s);
  CHECK(command.question.limits.min_gain == 0.3);
  CHECK(command.json);
}

TEST_CASE("mistakes and questions") {
  CHECK(std::get<std::string>(parse({"simulate", "--help"}).value()).find("--curve") !=
        std::string::npos);
  CHECK(std::get<std::string>(parse({"--version"}).value()).starts_with("elasticrun "));
  for (const auto& wrong :
       std::vector<std::vector<const char*>>{{},
                                             {"simulate"},
                                             {"simulate", "--curve", "c", "--noise", "-1"},
                                             {"simulate", "--curve", "c", "--idle", "5"},
                                             {"simulate", "--curve", "c", "--colour", "red"},
                                             {"dance"}}) {
    const auto parsed = parse(wrong);
    REQUIRE(parsed.has_error());
    CHECK(parsed.error().text.find('\n') == std::string::npos);
    CHECK(parsed.error().text.ends_with("(see elasticctl simulate --help)"));
  }
}

TEST_CASE("one seed, as text") {
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
      "worker hours 0.03 (+12.0 %)\n"
      "moves        1, the last one after 21.0 s; within 5 % of the best size after 21.0 s\n");
}

TEST_CASE("events, and many seeds") {
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
