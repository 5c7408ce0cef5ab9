// What is compared of the collectives of a step, and how it is told.
#include "worker/training/step_calls.hpp"

#include <doctest/doctest.h>

#include <set>
#include <vector>

namespace elasticrun::worker::training {
namespace {

using collective::DataType;

StepCalls calls_of(const std::vector<std::string>& calls) {
  StepCalls step;
  for (const std::string& call : calls) step.add(call);
  return step;
}

TEST_CASE("each difference in number, order, type, size or root changes the hash") {
  const std::vector<std::vector<std::string>> steps{
      {},
      {barrier_call},
      {barrier_call, barrier_call},
      {all_reduce_call(DataType::float64, 100)},
      {all_reduce_call(DataType::float32, 200)},
      {all_reduce_call(DataType::float32, 100)},
      {broadcast_call(100, 0)},
      {broadcast_call(100, 1)},
      {broadcast_call(101, 0)},
      {broadcast_call(100, 0), barrier_call},
      {barrier_call, broadcast_call(100, 0)},
  };
  std::set<std::uint64_t> hashes;
  for (const auto& step : steps) hashes.insert(calls_of(step).hash());
  CHECK(hashes.size() == steps.size());
}

TEST_CASE("the next step begins afresh") {
  StepCalls calls = calls_of({all_reduce_call(DataType::float32, 3)});
  CHECK_FALSE(calls.none());
  calls.clear();
  CHECK(calls.none());
  CHECK(calls.hash() == StepCalls().hash());
  CHECK(calls.words() == "none");
}

TEST_CASE("the words name the first ones") {
  StepCalls calls =
      calls_of({all_reduce_call(DataType::float32, 3), broadcast_call(16, 2), "barrier"});
  CHECK(calls.words() == "all_reduce of 3 float32, broadcast of 16 bytes from rank 2, barrier");
  for (int i = 0; i < 7; ++i) calls.add(barrier_call);
  CHECK(calls.words().ends_with(", barrier, barrier and 2 more"));
}

}  // namespace
}  // namespace elasticrun::worker::training
