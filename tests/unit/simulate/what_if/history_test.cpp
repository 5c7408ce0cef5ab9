// Event logs: what is read from them, what is rejected, and what is reconstructed.
#include "simulate/what_if/history.hpp"

#include <doctest/doctest.h>

#include "job/report/event_log.hpp"

using namespace elasticrun;
using namespace elasticrun::simulate::what_if;

namespace {

const std::string first =
    R"({"time":"2026-01-01T00:00:00.000Z","event":"job_started","program":["./train"],"policy":"fit","slots":8})"
    "\n";

std::string world(int generation, int size, int step, int batch, const char* hosts) {
  return R"({"time":"t","event":"world_formed","generation":)" + std::to_string(generation) +
         R"(,"size":)" + std::to_string(size) + R"(,"hosts":[)" + hosts + R"(],"step":)" +
         std::to_string(step) + R"(,"idle_ms":null,"global_batch":)" + std::to_string(batch) +
         "}\n";
}

std::string sample(int generation, int step, double rate, int batch) {
  return R"({"time":"t","event":"sample","generation":)" + std::to_string(generation) +
         R"(,"step":)" + std::to_string(step) + R"(,"samples_per_s":)" + std::to_string(rate) +
         R"(,"global_batch":)" + std::to_string(batch) + R"(,"step_ms":100,"compute_ms":80})" +
         "\n";
}

const std::string last = R"({"time":"end","event":"job_finished","exit_code":0,"steps":100})"
                         "\n";

History history(const std::string& text) {
  return read_history(job::report::read_events(text, "log").value()).value();
}

}  // namespace

TEST_CASE("an event is read as it was written") {
  const job::report::Event event{"sample",
                                 {{"step", std::int64_t{7}},
                                  {"rate", 2.5},
                                  {"planned", true},
                                  {"reason", std::string("a \"word\"\n")},
                                  {"hosts", std::vector<std::string>{"a", "b"}}}};
  const auto read = job::report::read_events(job::report::to_json(event, "now"), "x").value();
  REQUIRE(read.size() == 1);
  CHECK(read[0].name == "sample");
  CHECK(job::report::number(read[0], "step") == 7);
  CHECK(job::report::number(read[0], "rate") == 2.5);
  CHECK(job::report::text(read[0], "reason") == "a \"word\"\n");
  CHECK(job::report::text(read[0], "time") == "now");
  CHECK(job::report::list(read[0], "hosts") == std::vector<std::string>{"a", "b"});
  CHECK_FALSE(job::report::number(read[0], "reason"));
  CHECK(job::report::text(read[0], "nothing").empty());
}

TEST_CASE("a damaged last line is dropped; any other is an error") {
  const std::string whole = first + last;
  for (std::size_t cut = first.size(); cut < whole.size() - 1; ++cut) {
    CAPTURE(cut);
    CHECK(job::report::read_events(whole.substr(0, cut), "x").value().size() == 1);
  }
  CHECK(job::report::read_events(whole, "x").value().size() == 2);
  struct Case {
    std::string text;
    const char* error;
  };
  const Case cases[] = {
      {"", "x: no event in it"},
      {"{\"time", "x: no event in it"},
      {first + "\n" + last, "x:2: no event; is it what elasticrun --events wrote?"},
      {"{}\n" + last, "x:1: no event; is it what elasticrun --events wrote?"},
      {"[1]\n" + last, "x:1: no event; is it what elasticrun --events wrote?"},
      {first + first.substr(0, 20) + "\n" + last,
       "x:2: no event; is it what elasticrun --events wrote?"}};
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const auto read = job::report::read_events(c.text, "x");
    REQUIRE(read.has_error());
    CHECK(read.error().text == c.error);
  }
}

TEST_CASE("the runs of a log are told apart, whether consecutive or concurrent") {
  const auto line = [](const char* name, const std::string& job) {
    const std::string id = job.empty() ? "" : ",\"job\":\"" + job + "\"";
    return std::string("{\"event\":\"") + name + "\"" + id + "}\n";
  };
  struct Case {
    std::string log, runs;  // id and number of events of each run
  };
  const auto start = [&](const char* job) { return line("job_started", job); };
  const auto more = [&](const char* job) { return line("sample", job); };
  const Case cases[] = {
      {start("a") + more("a"), "a2"},
      {start("a") + more("a") + start("b") + more("b") + more("b"), "a2 b3"},
      {start("a") + start("b") + more("a") + more("b") + more("a"), "a3 b2"},
      {start("a") + start("a"), "a2"},
      // Older versions wrote no id: there, each job_started begins a new run.
      {start("") + more("") + start("") + more("") + more(""), "2 3"},
      {more("") + start("a") + more(""), "2 a1"},
      {start("") + start("a") + more("") + start(""), "2 a1 1"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.log);
    std::string found;
    for (const job::report::Run& run :
         job::report::runs_of(job::report::read_events(c.log, "log").value()))
      found += (found.empty() ? "" : " ") + run.job + std::to_string(run.events.size());
    CHECK(found == c.runs);
  }
}

TEST_CASE("measurements, batch and work of a run are reconstructed") {
  const History run = history(first + world(1, 2, 0, 64, R"("a")") + sample(1, 10, 600, 64) +
                              sample(1, 20, 620, 64) + world(2, 8, 40, 128, R"("a","b")") +
                              sample(1, 41, 1, 64) + sample(2, 50, 1000, 128) + last);
  REQUIRE(run.curve.size() == 2);
  CHECK(run.curve[0].size == 2);
  CHECK(run.curve[0].rounds == 2);
  CHECK(run.curve[0].samples_per_s == doctest::Approx(610));
  CHECK(run.curve[0].compute_share == doctest::Approx(0.8));
  CHECK(run.curve[1].size == 8);
  CHECK(run.curve[1].rounds == 1);  // the sample of the old world does not count
  CHECK(run.samples == 40 * 64 + 60 * 128);
  CHECK(run.batch.batch == 32);
  CHECK(run.batch.max_batch == 128);
  CHECK(run.finished);
  CHECK(run.slots == 8);
  CHECK(run.slots_per_host == 4);
  CHECK(run.policy == "fit");
  CHECK(run.last == "end");
}

TEST_CASE("a world without samples does not hide what its size reached with another batch") {
  const History run = history(first + world(1, 2, 0, 64, "") + sample(1, 10, 600, 64) +
                              world(2, 2, 20, 128, "") + last);
  REQUIRE(run.curve.size() == 1);
  CHECK(run.curve[0].global_batch == 64);
  const History both = history(first + world(1, 2, 0, 64, "") + sample(1, 10, 600, 64) +
                               world(2, 2, 20, 128, "") + sample(2, 30, 900, 128) + last);
  REQUIRE(both.curve.size() == 1);
  CHECK(both.curve[0].global_batch == 128);
}

TEST_CASE("the batch rule is inferred from the batches of the worlds") {
  const auto rule = [](int batch1, int batch2) {
    return history(first + world(1, 1, 0, batch1, "") + sample(1, 10, 1, batch1) +
                   world(2, 2, 20, batch2, "") + last)
        .batch;
  };
  CHECK(rule(32, 64).batch == 32);
  CHECK(rule(32, 64).max_batch == 0);
  CHECK(rule(64, 64).batch == 0);
  CHECK(rule(64, 64).max_batch == 64);
  CHECK(rule(64, 96).batch == 64);
  CHECK(rule(64, 96).max_batch == 96);
}

TEST_CASE("a killed run can be read, and one without samples is an error") {
  const History cut = history(first + world(1, 1, 0, 32, "") + sample(1, 10, 100, 32) + "{\"ti");
  CHECK_FALSE(cut.finished);
  CHECK(cut.samples == 320);
  const auto plain = read_history(job::report::read_events(first + last, "x").value());
  REQUIRE(plain.has_error());
  CHECK(plain.error().text.starts_with("no size was measured in it"));
}

TEST_CASE("a measured size is given as measured, another one as a range that contains the law") {
  // Computing a batch of 64 takes 0.2 s divided by the number of workers; there is no sync.
  std::string log = first;
  for (int size = 1; size <= 2; ++size) {
    log += world(size, size, 10 * size, 64, R"("a")");
    const double step = 0.2 / size;
    for (int i = 1; i <= 9; ++i)
      log += R"({"time":"t","event":"sample","generation":)" + std::to_string(size) +
             R"(,"step":)" + std::to_string(10 * size + i) + R"(,"samples_per_s":)" +
             std::to_string(64 / step) + R"(,"global_batch":64,"step_ms":)" +
             std::to_string(1000 * step) + R"(,"compute_ms":)" + std::to_string(1000 * step) +
             "}\n";
  }
  const auto all = chances(history(log), {{.size = 1, .hosts = 1, .price = 1},
                                          {.size = 2, .hosts = 1, .price = 2},
                                          {.size = 4, .hosts = 1, .price = 4}});
  REQUIRE(all.size() == 3);
  CHECK(all[0].low == doctest::Approx(320));
  CHECK(all[0].high == all[0].low);
  CHECK(all[1].low == doctest::Approx(640));
  CHECK(all[2].low <= 1280);
  CHECK(all[2].high >= 0.99 * 1280);
  CHECK(all[2].low > 640);
}

TEST_CASE("much higher throughput with fewer workers is not assumed without evidence") {
  const auto at_one = [](double compute_ms) {
    const auto line = R"({"event":"sample","generation":1,"step":10,"samples_per_s":640,)"
                      R"("global_batch":64,"step_ms":100,"compute_ms":)";
    const History run =
        history(first + world(1, 2, 0, 64, R"("a")") + line + std::to_string(compute_ms) + "}\n");
    return chances(run, {{.size = 1, .hosts = 1, .price = 1}, {.size = 2, .hosts = 1, .price = 2}})
        .front();
  };
  CHECK(at_one(1).high == doctest::Approx(640));  // the parts of the step are not known
  // nearly all of the step is sync; the limit is twice the throughput
  CHECK(at_one(10).high == doctest::Approx(1280));
  CHECK(at_one(90).high == doctest::Approx(64 / 0.09));  // if compute does not parallelize at all
}
