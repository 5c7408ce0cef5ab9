// What is compared of the collectives of a step, and how it is told.
#include "worker/training/step_calls.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <set>
#include <vector>

namespace elasticrun::worker::training {
namespace {

using collective::DataType;
using Step = std::function<void(StepCalls&)>;

StepCalls calls_of(const Step& step) {
  StepCalls calls;
  step(calls);
  return calls;
}

TEST_CASE("each difference in number, order, type, size or root changes the hash") {
  const std::vector<Step> steps{
      [](StepCalls&) {},
      [](StepCalls& calls) { calls.barrier(); },
      [](StepCalls& calls) { calls.barrier(), calls.barrier(); },
      [](StepCalls& calls) { calls.all_reduce(DataType::float64, 100); },
      [](StepCalls& calls) { calls.all_reduce(DataType::float32, 200); },
      [](StepCalls& calls) { calls.all_reduce(DataType::float32, 100); },
      [](StepCalls& calls) { calls.all_reduce(DataType::int64, 100); },
      [](StepCalls& calls) { calls.broadcast(100, 0); },
      [](StepCalls& calls) { calls.broadcast(100, 1); },
      [](StepCalls& calls) { calls.broadcast(101, 0); },
      [](StepCalls& calls) { calls.broadcast(100, 0), calls.barrier(); },
      [](StepCalls& calls) { calls.barrier(), calls.broadcast(100, 0); },
  };
  std::set<std::uint64_t> hashes;
  for (const Step& step : steps) {
    hashes.insert(calls_of(step).hash());
    CHECK(calls_of(step).hash() == calls_of(step).hash());
  }
  CHECK(hashes.size() == steps.size());
}

TEST_CASE("the next step begins afresh") {
  StepCalls calls = calls_of([](StepCalls& one) { one.all_reduce(DataType::float32, 3); });
  calls.clear();
  CHECK(calls.hash() == StepCalls().hash());
  CHECK(calls.words() == "none");
}

TEST_CASE("the words name the first ones") {
  StepCalls calls;
  calls.all_reduce(DataType::float32, 3);
  calls.broadcast(16, 2);
  calls.barrier();
  CHECK(calls.words() == "all_reduce of 3 float32, broadcast of 16 bytes from rank 2, barrier");
  for (int i = 0; i < 7; ++i) calls.barrier();
  CHECK(calls.words().ends_with(", barrier, barrier and 2 more"));
}

}  // namespace
}  // namespace elasticrun::worker::training
