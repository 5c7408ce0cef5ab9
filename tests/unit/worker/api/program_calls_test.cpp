// Functions of the program that end in ways of their own: with an exception that no C program
// knows, or in a child that they have forked.
#include <doctest/doctest.h>

#include <functional>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "alone.hpp"

namespace elasticrun::alone_test {
namespace {

TEST_CASE("an exception that is no status takes the worker out of the world") {
  struct Case {
    std::string error;
    std::function<void()> thrown;
  };
  const std::vector<Case> cases{
      {"out of memory", [] { throw std::bad_alloc(); }},
      {"no thread",
       [] {
         throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again),
                                 "no thread");
       }},
      {"an unknown error", [] { throw 7; }}};
  for (const Case& one : cases) {
    CAPTURE(one.error);
    Alone alone;
    const auto passes = alone.compute;
    alone.compute = [&](elasticrun_step*) -> int { return one.thrown(), 0; };
    CHECK(alone.train() == ELASTICRUN_FAILED);
    CHECK(contains(alone.error(), one.error));
    alone.compute = passes;
    CHECK(alone.train() == ELASTICRUN_EVICTED);
  }
}

}  // namespace
}  // namespace elasticrun::alone_test
