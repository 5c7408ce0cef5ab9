// The copy of the committed state beside the program's memory.
#include "worker/state/state_copy.hpp"

#include <doctest/doctest.h>

namespace elasticrun::worker::state {
namespace {

TEST_CASE("changes of a step are detected, and can be undone") {
  std::vector<double> weights{1, 2, 3}, running{4};
  std::vector<char> empty;
  StateTable table;
  REQUIRE(table.add_state("weights", weights.data(), 24).has_value());
  REQUIRE(table.add_state("empty", empty.data(), 0).has_value());
  REQUIRE(
      table.add_buffers("running", running.data(), collective::DataType::float64, 1).has_value());
  table.seal();
  StateCopy copy(table);
  copy.take();
  CHECK(copy.holds());
  weights[2] = 30;
  CHECK_FALSE(copy.holds());
  copy.put_back();
  CHECK(weights == std::vector<double>{1, 2, 3});
  CHECK(copy.holds());
  weights[0] = 10;
  copy.take();
  weights[0] = 11;
  copy.put_back();
  CHECK(weights == std::vector<double>{10, 2, 3});
}

TEST_CASE("without a state there is nothing to restore") {
  StateTable table;
  table.seal();
  StateCopy copy(table);
  copy.take();
  copy.put_back();
  CHECK(copy.holds());
}

}  // namespace
}  // namespace elasticrun::worker::state
