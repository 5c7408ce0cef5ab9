// Several rows over Gloo in one call, or in several.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <span>
#include <utility>
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

// Batches of rows, of which only the first is there before the others are under way.
class Batches final : public Group::RowSource {
 public:
  explicit Batches(std::vector<std::vector<Group::Row>> batches) : batches_(std::move(batches)) {}
  std::span<const Group::Row> next() override {
    if (given == batches_.size()) return {};
    return batches_[given++];
  }
  void summed() override {
    for (const Group::Row& row : batches_[done++])
      if (row.type == DataType::float32 && row.count > 0)
        CHECK(static_cast<const float*>(row.data)[row.count - 1] == expected);
  }

  std::size_t given = 0, done = 0;
  float expected = 0;

 private:
  std::vector<std::vector<Group::Row>> batches_;
};

TEST_CASE("rows of a source are summed in order, and it is told of each batch") {
  for (const int size : {1, 2, 3}) {
    CAPTURE(size);
    run_ranks(size, [&](Group& group) {
      const auto mine = static_cast<float>(group.rank() + 1);
      std::vector<std::vector<float>> memory;
      for (const std::size_t count : {70'000u, 0u, 5u, 1'000'000u, 300'000u, 1u})
        memory.emplace_back(count, mine);
      std::vector<Group::Row> rows;
      for (auto& row : memory) rows.push_back({row.data(), DataType::float32, row.size()});
      Bfloat16 narrow = to_bfloat16(mine);
      rows.insert(rows.begin() + 3, {&narrow, DataType::bfloat16, 1});
      const auto sum = static_cast<float>(size * (size + 1) / 2);
      if (size == 2 && group.rank() == 1) return group.all_reduce_each(rows);
      Batches source({{rows[0]}, {rows[1], rows[2]}, {rows[3], rows[4], rows[5]}, {rows[6]}});
      source.expected = sum;
      group.all_reduce_from(source);
      CHECK(source.given == 4);
      CHECK(source.done == 4);
      CHECK(widened(narrow) == sum);
    });
  }
}
