// Several rows over Gloo in one call, or in several.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <span>
#include <vector>

#include "tests/unit/worker/ranks.hpp"

using namespace elasticrun::worker::collective;
using namespace elasticrun::worker::testing;

TEST_CASE("rows of several types, the last one short, round after round") {
  for (const int size : {1, 2, 3, 6, 17}) {
    CAPTURE(size);
    std::mutex mutex;
    std::vector<std::vector<double>> results;
    run_ranks(size, [&](Group& group) {
      const int ranks = size * (size + 1) / 2, mine = group.rank() + 1;
      std::vector<double> all;
      for (int round = 0; round < 3; ++round) {
        std::vector<float> large(100'000, static_cast<float>(mine));
        std::vector<Bfloat16> narrow(300, to_bfloat16(static_cast<float>(mine)));
        std::vector<double> numbers{1.0 / (round + 3 * mine), static_cast<double>(mine)};
        const Group::Row rows[] = {{large.data(), DataType::float32, large.size()},
                                   {narrow.data(), DataType::bfloat16, narrow.size()},
                                   {numbers.data(), DataType::float64, numbers.size(), true}};
        group.all_reduce_each(rows);
        CHECK(large[77'777] == static_cast<float>(ranks));
        CHECK(widened(narrow[299]) == doctest::Approx(ranks).epsilon(1.0 / 128));
        CHECK(numbers[1] == ranks);
        all.push_back(numbers[0]);
      }
      const std::lock_guard lock(mutex);
      results.push_back(all);
    });
    for (const auto& result : results) CHECK(result == results.front());
  }
}

TEST_CASE("each rank divides the same rows into calls in its own way") {
  for (const int size : {2, 3}) {
    CAPTURE(size);
    run_ranks(size, [&](Group& group) {
      if (size == 2) REQUIRE(group.divides_freely());
      std::vector<std::vector<float>> rows;
      for (const std::size_t count : {100'000u, 3u, 1'000'000u, 70'000u, 70'000u, 1u, 200'000u})
        rows.emplace_back(count, static_cast<float>(group.rank() + 1));
      std::vector<Bfloat16> narrow(300, to_bfloat16(static_cast<float>(group.rank() + 1)));
      std::vector<double> numbers(5, group.rank() + 1);
      std::vector<Group::Row> all;
      for (std::vector<float>& row : rows)
        all.push_back({row.data(), DataType::float32, row.size()});
      all.insert(all.begin() + 4, {narrow.data(), DataType::bfloat16, narrow.size()});
      all.push_back({numbers.data(), DataType::float64, numbers.size()});
      const std::size_t at_once =
          std::array{all.size(), std::size_t{1}, std::size_t{2}}[std::size_t(group.rank())];
      for (std::span<Group::Row> left = all; !left.empty();) {
        group.all_reduce_each(left.first(std::min(at_once, left.size())));
        left = left.subspan(std::min(at_once, left.size()));
      }
      double vote = group.rank() + 1;
      const Group::Row votes[] = {{nullptr, DataType::float32, 0},
                                  {&vote, DataType::float64, 1, true}};
      group.all_reduce_each(std::span(votes).last(group.rank() == 0 ? 1 : 2));
      CHECK(vote == size * (size + 1) / 2);
      const auto sum = static_cast<float>(size * (size + 1) / 2);
      for (const std::vector<float>& row : rows)
        CHECK(std::ranges::count(row, sum) == std::ptrdiff_t(row.size()));
      CHECK(widened(narrow[299]) == sum);
      CHECK(numbers == std::vector<double>(5, sum));
    });
  }
}
