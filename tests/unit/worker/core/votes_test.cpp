// Sums of votes show whether all members agree.
#include "worker/core/votes.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace elasticrun::worker::core {
namespace {

Votes for_save(std::int64_t number) {
  const double digit = Votes::digit_of(number);
  return {.save = digit, .save_square = digit * digit};
}

Votes sum(const std::vector<Votes>& votes) {
  Votes all;
  for (const Votes& one : votes) all += one;
  return all;
}

TEST_CASE("a switch is agreed when all are ready for it") {
  for (const int ready : {0, 1, 3}) {
    std::vector<Votes> votes(3);
    for (int i = 0; i < ready; ++i) votes[static_cast<std::size_t>(i)].change = 1;
    CHECK(sum(votes).agree_to_change(3) == (ready == 3));
  }
}

TEST_CASE("a save is agreed when all are asked for the same one") {
  // Of members that are asked for any saves, or for none (-1): whoever agrees is asked for all's.
  const std::vector<int> numbers{-1, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  for (const int a : numbers)
    for (const int b : numbers)
      for (const int c : numbers) {
        std::vector<Votes> votes;
        for (const int number : {a, b, c}) votes.push_back(number < 0 ? Votes() : for_save(number));
        const bool same = a % 7 == b % 7 && b % 7 == c % 7;
        if (a > 0) CHECK(sum(votes).agree_to_save(a, 3) == same);
      }
}

TEST_CASE("the sums of the largest world are exact in a float") {
  constexpr std::size_t members = 131'072;
  for (std::int64_t number = 1; number <= 7; ++number) {
    float save = 0, square = 0;
    const Votes one = for_save(number);
    for (std::size_t i = 0; i < members; ++i) {
      save += static_cast<float>(one.save);
      square += static_cast<float>(one.save_square);
    }
    const Votes all{.save = static_cast<double>(save), .save_square = static_cast<double>(square)};
    CHECK(all.agree_to_save(number, members));
    CHECK_FALSE(all.agree_to_save(number, members - 1));
  }
}

}  // namespace
}  // namespace elasticrun::worker::core
