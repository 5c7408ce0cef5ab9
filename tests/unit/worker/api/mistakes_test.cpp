// Mistakes of a program that would otherwise train on and end with wrong weights: each is refused
// at once, with a message that says what is wrong and where.
#include <doctest/doctest.h>

#include <elasticrun/elasticrun.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace {

using elasticrun::Job;
using elasticrun::Step;

const elasticrun::TrainOptions ten{.samples = 10, .batch = 5};
const std::function<void(Step&)> nothing = [](Step&) {};

// The text of the Misuse that a call throws; empty: it throws none.
std::string refused(const std::function<void()>& call) {
  try {
    call();
    return "";
  } catch (const elasticrun::Misuse& misuse) {
    return misuse.what();
  }
}

bool contains(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

TEST_CASE("train without state or gradients is refused, but empty ones are accepted") {
  std::vector<double> weights{0}, none;
  Job job;
  CHECK(contains(refused([&] { job.train(ten, nothing, nothing); }), "no state is registered"));
  job.state("none", nullptr, 0);
  CHECK(
      contains(refused([&] { job.train(ten, nothing, nothing); }), "no gradients are registered"));
  job.gradients("no gradients", none).state("weights", weights);
  CHECK(refused([&] { job.train(ten, nothing, nothing); }) == "");
}

TEST_CASE("gradients and buffers share memory with nothing") {
  std::vector<double> weights{1, 2, 3};
  const std::span all(weights);
  for (const bool own_loop : {false, true}) {
    Job job;
    job.state("weights", weights).buffers("last", all.last(1)).gradients("none", all.first(0));
    CHECK(contains(
        refused([&] { own_loop ? job.start() : job.train(ten, nothing, nothing); }),
        own_loop ? "start: buffers 'last': shares memory with" : "train: buffers 'last': shares"));
  }
}

TEST_CASE("a state source cannot be given while a step is under way") {
  std::vector<double> weights{1}, gradients{1}, late;
  const elasticrun::StateSource source{
      .list = [&](elasticrun::Listing& listing) { listing.array("late", std::span(late)); },
      .make_room = [](std::span<const elasticrun_array>) {}};
  Job job;
  job.state("weights", weights).gradients("gradients", gradients);
  const auto give = [&] { return refused([&] { job.state_source(source); }); };
  job.begin(ten);
  CHECK(give() == "");
  (void)job.next();
  CHECK(contains(give(), "state_source: a step is under way"));
  CHECK(job.reduce());
  CHECK(contains(give(), "state_source: a step is under way"));
  CHECK(contains(refused([&] { job.leave(); }), "leave: the step is reduced"));
  job.commit();
  CHECK(give() == "");
  job.leave();

  Job loop;
  loop.state("weights", weights);
  loop.start();
  loop.barrier();
  CHECK(contains(refused([&] { loop.state_source(source); }), "a step is under way"));
  loop.commit();
  weights[0] += 1;
  CHECK(contains(refused([&] { loop.state_source(source); }), "has changed since the last commit"));
  loop.commit();
  CHECK(refused([&] { loop.state_source(source); }) == "");
  loop.finish();
}

TEST_CASE("a program's own loop without state is refused") {
  Job job;
  CHECK(contains(refused([&] { job.start(); }), "start: no state is registered"));
  job.state("none", nullptr, 0);
  CHECK(refused([&] { job.start(); }) == "");
}

// Three vectors, and a place in the program where one of them is changed.
struct Spoilt {
  std::vector<double> weights{1, 2}, gradients{0, 0}, running{0};
  std::optional<std::string> words;

  void at(const std::string& place, const std::function<void()>& spoil) {
    Job job;
    job.state("weights", weights).gradients("gradients", gradients).buffers("running", running);
    const auto here = [&](const char* now) {
      if (place == now) spoil();
    };
    here("before train");
    job.on_epoch([&](const elasticrun::World&) { here("on_epoch"); });
    words = refused([&] {
      job.train(
          ten, [&](Step&) { here("compute"); }, [&](Step&) { here("apply"); });
    });
  }
};

TEST_CASE("a registered vector must keep its memory and its size") {
  for (const std::string place : {"before train", "compute", "apply", "on_epoch"}) {
    CAPTURE(place);
    Spoilt grown;
    grown.at(place, [&] { grown.weights.resize(3); });
    CHECK(contains(*grown.words,
                   "'weights': the vector that was registered has changed its size "
                   "(16 to 24 bytes)"));
    Spoilt moved;
    moved.at(place,
             [&] { moved.gradients = std::vector<double>(1000), moved.gradients.resize(2); });
    CHECK(contains(*moved.words, "'gradients': the vector that was registered has moved"));
    Spoilt cleared;
    cleared.at(place, [&] { cleared.running.clear(); });
    CHECK(contains(*cleared.words, "'running'"));
  }
}

TEST_CASE("a registered vector must keep its size in a program's own loop, too") {
  std::vector<double> weights{1, 2};
  Job job;
  job.state("weights", weights);
  job.start();
  weights.push_back(3);
  CHECK(contains(refused([&] { job.commit(); }), "'weights'"));
  CHECK(contains(refused([&] { job.all_reduce(weights); }), "'weights'"));
  CHECK(contains(refused([&] { job.finish(); }), "'weights'"));
}

TEST_CASE("the vector behind a registered span may be moved") {
  std::vector<double> weights{1, 2}, gradients{0};
  Job job;
  job.state("weights", std::span(weights)).gradients("gradients", std::span(gradients));
  const std::vector<double> owner = std::move(weights);
  CHECK(refused([&] { job.train(ten, nothing, nothing); }) == "");
}

TEST_CASE("compute must not change registered state") {
  std::vector<double> weights{1, 2}, gradients{0};
  Job job;
  job.state("weights", weights).gradients("gradients", gradients);
  CHECK(contains(refused([&] {
                   job.train(
                       ten, [&](Step&) { weights[1] += 1; }, nothing);
                 }),
                 "compute has changed the registered state 'weights' in step 0"));
}

TEST_CASE("uncommitted changes at the end of a program's own loop are refused") {
  std::vector<double> weights{1, 2};
  Job job;
  job.state("weights", weights);
  job.start();
  weights[0] = 5;
  CHECK(contains(refused([&] { job.finish(); }),
                 "registered state has changed since the last commit"));
  job.commit();
  CHECK(refused([&] { job.finish(); }) == "");
  CHECK(weights == std::vector<double>{5, 2});
}

TEST_CASE("samples can be counted only in a program's own loop, and not be negative") {
  std::vector<double> weights{1};
  Job job;
  job.state("weights", weights);
  CHECK(contains(refused([&] { job.samples(1); }), "samples: call start first"));
  job.start();
  CHECK(contains(refused([&] { job.samples(-1); }), "samples: -1"));
  job.samples(5);
  job.commit();
  job.finish();
}

}  // namespace
