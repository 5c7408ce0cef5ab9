// What can be registered, and what is refused.
#include "worker/state/state.hpp"

#include <doctest/doctest.h>

#include <functional>

#include "worker/state/state_image.hpp"

using namespace elasticrun::worker::collective;
using namespace elasticrun::worker::state;

namespace {

std::string why(const elasticrun::Result<void>& result) {
  return result ? "" : result.error().text;
}

std::uint64_t hash_after(const std::function<void(StateTable&)>& registering) {
  StateTable table;
  registering(table);
  table.seal();
  return table.layout_hash();
}

}  // namespace

TEST_CASE("mistakes in registering are named") {
  StateTable table;
  float x[4] = {};
  CHECK(why(table.add_state("w", x, sizeof x)).empty());
  CHECK(why(table.add_gradients("g", x, DataType::float32, 4)).empty());
  CHECK(why(table.add_buffers("b", x, DataType::float32, 4)).empty());
  CHECK(why(table.add_state("empty", nullptr, 0)).empty());
  CHECK(why(table.add_buffers("g", x, DataType::float32, 4)) ==
        "buffers 'g': the name is taken by gradients");
  CHECK(why(table.add_state("", x, 1)).find("no name") != std::string::npos);
  CHECK(why(table.add_state("null", nullptr, 1)).find("no memory") != std::string::npos);
  CHECK(why(table.add_gradients("d", x, DataType::int64, 2)).find("no mean") != std::string::npos);
  CHECK(why(table.add_gradients("big", x, DataType::float32, SIZE_MAX)).find("more than memory") !=
        std::string::npos);
  table.seal();
  CHECK(why(table.add_state("late", x, 4)).find("after the start") != std::string::npos);
}

TEST_CASE("only state may be registered twice") {
  std::vector<float> x(12);
  float* const at = x.data();
  const auto refusal = [](const std::function<void(StateTable&)>& registering) {
    StateTable table;
    registering(table);
    return why(table.check_overlaps());
  };
  CHECK(refusal([&](StateTable& table) {
          (void)table.add_state("all", at, 48);
          (void)table.add_state("tied", at + 4, 16);
        }) == "");
  CHECK(refusal([&](StateTable& table) {
          (void)table.add_gradients("second", at + 4, DataType::float32, 4);
          (void)table.add_buffers("third", at + 8, DataType::float32, 4);
          (void)table.add_state("first", at, 16);
          (void)table.add_gradients("none", at + 5, DataType::float32, 0);
        }) == "");
  CHECK(refusal([&](StateTable& table) {
          (void)table.add_gradients("all", at, DataType::float32, 12);
          (void)table.add_gradients("bias", at + 11, DataType::float32, 1);
        }) ==
        "gradients 'bias': shares memory with gradients 'all'; only state may be registered twice");
  // Neither the first one nor the one before, but the one that reaches furthest.
  CHECK(refusal([&](StateTable& table) {
          (void)table.add_state("w", at, 36);
          (void)table.add_state("x", at + 1, 4);
          (void)table.add_buffers("mean", at + 8, DataType::float32, 1);
        }) == "buffers 'mean': shares memory with state 'w'; only state may be registered twice");
  CHECK(refusal([&](StateTable& table) {
          (void)table.add_gradients("g", at, DataType::float32, 9);
          (void)table.add_state("w", at + 8, 4);
        }) == "state 'w': shares memory with gradients 'g'; only state may be registered twice");
}

TEST_CASE("the state and the committed buffers are transferred, gradients are not") {
  StateTable table;
  char state[10] = {};
  double gradients[7] = {}, buffer[3] = {1, 2, 3};
  REQUIRE(table.add_state("s", state, sizeof state).has_value());
  REQUIRE(table.add_gradients("g", gradients, DataType::float64, 7).has_value());
  REQUIRE(table.add_buffers("b", buffer, DataType::float64, 3).has_value());
  table.seal();
  CHECK(table.bytes() == 10 + 24);

  buffer[1] = 20;
  table.restore_buffers();
  CHECK(buffer[1] == 2);
  buffer[1] = 21;
  table.commit_buffers();
  buffer[1] = 22;
  table.restore_buffers();
  CHECK(buffer[1] == 21);
}

TEST_CASE("the layout hash covers names, kinds, types, sizes and order") {
  static float x[8];
  const auto base = hash_after([](StateTable& t) {
    (void)t.add_state("a", x, 8);
    (void)t.add_gradients("b", x, DataType::float32, 2);
  });
  CHECK(base == hash_after([](StateTable& t) {
          (void)t.add_state("a", x + 1, 8);
          (void)t.add_gradients("b", x, DataType::float32, 2);
        }));
  const std::vector<std::function<void(StateTable&)>> others{
      [](StateTable& t) {
        (void)t.add_state("c", x, 8);
        (void)t.add_gradients("b", x, DataType::float32, 2);
      },
      [](StateTable& t) {
        (void)t.add_state("a", x, 12);
        (void)t.add_gradients("b", x, DataType::float32, 2);
      },
      [](StateTable& t) {
        (void)t.add_state("a", x, 8);
        (void)t.add_buffers("b", x, DataType::float32, 2);
      },
      [](StateTable& t) {
        (void)t.add_state("a", x, 8);
        (void)t.add_gradients("b", x, DataType::float64, 1);
      },
      [](StateTable& t) {
        (void)t.add_gradients("b", x, DataType::float32, 2);
        (void)t.add_state("a", x, 8);
      },
      [](StateTable& t) { (void)t.add_state("a", x, 8); },
  };
  for (const auto& other : others) CHECK(hash_after(other) != base);
}

TEST_CASE("an image addresses scattered memory as one row") {
  std::byte a[3], b[5], c[2];
  const Segment segments[] = {{a, 3}, {b, 5}, {c, 2}};
  const StateImage image(segments);
  CHECK(image.in_one_piece(0, 3) == a);
  CHECK(image.in_one_piece(3, 5) == b);
  CHECK(image.in_one_piece(4, 2) == b + 1);
  CHECK(image.in_one_piece(9, 1) == c + 1);
  CHECK(image.in_one_piece(2, 2) == nullptr);
  std::byte row[10], back[10];
  for (std::size_t i = 0; i < 10; ++i) row[i] = std::byte(i + 1);
  for (std::size_t from = 0; from <= 10; ++from)
    for (std::size_t bytes = 0; from + bytes <= 10; ++bytes) {
      for (std::byte* memory : {a, b, c}) std::fill_n(memory, memory == c ? 2 : 3, std::byte{0});
      image.copy_in(from, bytes, row + from);
      std::fill_n(back, 10, std::byte{0});
      image.copy_out(from, bytes, back + from);
      for (std::size_t i = 0; i < 10; ++i)
        CHECK(back[i] == (i >= from && i < from + bytes ? row[i] : std::byte{0}));
    }
}
