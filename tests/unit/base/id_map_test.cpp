// IdMap must behave like std::map, iterate in the same order, and never move its values.
#include "base/id_map.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "base/ids.hpp"

using namespace elasticrun;

namespace {

using Map = IdMap<WorkerId, std::string>;

bool equal(const Map& map, const std::map<WorkerId, std::string>& other) {
  return map.size() == other.size() && map.empty() == other.empty() &&
         std::equal(map.begin(), map.end(), other.begin(), other.end(),
                    [](const auto& a, const auto& b) { return a == b; });
}

}  // namespace

TEST_CASE("an id map does what std::map does") {
  std::minstd_rand dice(1);
  Map map;
  std::map<WorkerId, std::string> other;
  for (int i = 0; i < 20'000; ++i) {
    const WorkerId id(dice() % 700);
    const std::string text = std::to_string(i);
    switch (dice() % 5) {
      case 0:
        CHECK(map.try_emplace(id, text).second == other.try_emplace(id, text).second);
        break;
      case 1:
        map[id] = other[id] = text;
        break;
      case 2:
        CHECK(map.erase(id) == other.erase(id));
        break;
      case 3:
        CHECK(map.contains(id) == other.contains(id));
        break;
      case 4:
        CHECK((map.find(id) == map.end()) == (other.find(id) == other.end()));
        break;
    }
    if (i % 97 == 0) REQUIRE(equal(map, other));
  }
  for (auto at = map.begin(); at != map.end();) {
    other.erase(at->first);
    at = map.erase(at);
    if (at != map.end()) ++at;
  }
  CHECK(equal(map, other));
  map.clear();
  CHECK(map.begin() == map.end());
}

TEST_CASE("ids that are far apart need little memory and keep their order") {
  Map map;
  for (const std::uint32_t id : {~0u, 0u, 1u << 31, 5u}) map[WorkerId(id)] = std::to_string(id);
  std::string order;
  for (const auto& [id, text] : map) order += text + " ";
  CHECK(order == "0 5 2147483648 4294967295 ");
  CHECK(map.erase(WorkerId(1u << 31)) == 1);
  CHECK(map.size() == 3);
  CHECK_FALSE(map.contains(WorkerId(1u << 31)));
}

TEST_CASE("a copy is independent, and a moved-from map can be assigned again") {
  Map map;
  map[WorkerId(1)] = "one";
  map[WorkerId(64)] = "two";
  Map copy = map;
  copy.at(WorkerId(1)) = "other";
  CHECK(map.at(WorkerId(1)) == "one");
  const Map moved = std::move(map);
  CHECK(moved.size() == 2);
  map = copy;
  CHECK(map.at(WorkerId(64)) == "two");
}

TEST_CASE("values keep their addresses while others are added and removed") {
  IdMap<WorkerId, std::unique_ptr<int>> map;
  const auto& value = map.try_emplace(WorkerId(5), std::make_unique<int>(5)).first->second;
  for (std::uint32_t i = 6; i < 10'000; ++i) map.try_emplace(WorkerId(i));
  for (std::uint32_t i = 6; i < 10'000; ++i) map.erase(WorkerId(i));
  CHECK(&value == &map.at(WorkerId(5)));
  CHECK(*value == 5);
}
