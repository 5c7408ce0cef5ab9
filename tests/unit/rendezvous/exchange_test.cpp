// Which ranks get which values, and when.
#include "rendezvous/exchange.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

#include "wire/codec.hpp"
#include "wire/limits.hpp"

namespace elasticrun::rendezvous {
namespace {

// "to 0,2: 1=b 3=d" for each answer, in order; "all" where it has the values of all ranks.
std::string text_of(const std::vector<Gathering>& gathered) {
  std::string text;
  for (const Gathering& one : gathered) {
    std::vector<int> to;
    for (const Rank rank : one.to) to.push_back(rank.value);
    text += fmt::format("{}to {}:", text.empty() ? "" : ", ", fmt::join(to, ","));
    if (one.ranks.empty())
      text += fmt::format(" all {}", fmt::join(one.values, " "));
    else
      REQUIRE(one.ranks.size() == one.values.size());
    for (std::size_t i = 0; i < one.ranks.size(); ++i)
      text += fmt::format(" {}={}", one.ranks[i], one.values[i]);
  }
  return text;
}

std::string publish(Exchange& exchange, int rank, const std::string& value,
                    std::vector<std::int32_t> needs = {}) {
  return text_of(exchange.publish(Rank(rank), value, std::move(needs)));
}

TEST_CASE("a gathering that is judged to fit into a frame does fit") {
  for (const char c : {'a', '"', '\n', '\x01', '\xff'}) {
    CAPTURE(static_cast<int>(c));
    const std::string value(wire::address_bytes_max, c);
    Gathering gathered;
    while (fits_a_frame(gathered)) {
      gathered.ranks.push_back(static_cast<std::int32_t>(wire::world_size_max));
      gathered.values.push_back(value);
    }
    CHECK(gathered.values.size() > 20);
    gathered.ranks.pop_back();
    gathered.values.pop_back();
    const wire::ToWorker message =
        wire::Gathered{Generation(~0ULL), gathered.values, gathered.ranks};
    CHECK(wire::encode(message).size() <= wire::frame_bytes_max);
  }
}

TEST_CASE("a rank that needs all gets them once, with the first value of each rank") {
  Exchange row(3);
  CHECK(publish(row, 2, "c") == "");
  CHECK(publish(row, 0, "a") == "");
  CHECK(publish(row, 0, "again") == "");
  CHECK(publish(row, 3, "beyond") == "");
  CHECK(publish(row, -1, "below") == "");
  CHECK_FALSE(row.has(Rank(1)));
  CHECK_FALSE(row.complete());
  CHECK(publish(row, 1, "") == "to 0,1,2: all a  c");  // an empty value counts, too
  CHECK(row.complete());
  CHECK(publish(row, 1, "b") == "");
  Exchange none(0);
  CHECK(publish(none, 0, "a") == "");
  Exchange alone(1);
  CHECK(publish(alone, 0, "a") == "to 0: all a");
}

TEST_CASE("a rank that needs some is answered when the last of these has published") {
  Exchange row(4);
  CHECK(publish(row, 0, "a", {1}) == "");
  CHECK(publish(row, 1, "b", {2, 0}) == "to 0: 1=b");
  CHECK(publish(row, 3, "d", {1, 0}) == "to 3: 0=a 1=b");
  CHECK(publish(row, 2, "c", {3, 1}) == "to 2: 1=b 3=d, to 1: 0=a 2=c");
}

TEST_CASE("ranks that need all and ranks that need some work in one world") {
  Exchange row(3);
  CHECK(publish(row, 0, "a") == "");
  CHECK(publish(row, 1, "b", {2}) == "");
  CHECK(publish(row, 2, "c") == "to 1: 2=c, to 0,2: all a b c");
}

TEST_CASE("invalid ranks among the needs are ignored, and duplicates count once") {
  constexpr std::int32_t least = std::numeric_limits<std::int32_t>::min();
  constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
  Exchange row(3);
  CHECK(publish(row, 0, "a", {2, least, 1, 2, 3, most, -1, 1}) == "");
  CHECK(publish(row, 1, "b", {3, most}) == "");  // no valid need is left, so it gets all
  CHECK(publish(row, 2, "c", {2, 2}) == "to 2: 2=c, to 0: 1=b 2=c, to 1: all a b c");
}

TEST_CASE("in any order each rank is answered once, with the values that it needs") {
  constexpr int size = 50;
  for (int stride : {1, 7, 19, 49}) {
    Exchange row(size);
    std::vector<int> answers(size, 0);
    for (int i = 0; i < size; ++i) {
      const int rank = i * stride % size;
      const std::vector<std::int32_t> needs{(rank + 1) % size, (rank + 2) % size,
                                            (rank + size - 3) % size};
      for (const Gathering& one : row.publish(Rank(rank), std::to_string(rank), needs)) {
        REQUIRE(one.to.size() == 1);
        ++answers[static_cast<std::size_t>(one.to.front().value)];
        REQUIRE(one.ranks.size() == 3);
        for (std::size_t k = 0; k < 3; ++k) CHECK(one.values[k] == std::to_string(one.ranks[k]));
      }
    }
    CHECK(answers == std::vector<int>(size, 1));
  }
}

}  // namespace
}  // namespace elasticrun::rendezvous
