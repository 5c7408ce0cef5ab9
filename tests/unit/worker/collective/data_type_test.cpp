// Numbers of 16 bits: each value, there and back, and how others are rounded.
#include "worker/collective/data_type.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace elasticrun::worker::collective;

TEST_CASE("each number of 16 bits is itself again after it was widened") {
  int wrong = 0;
  for (int i = 0; i < 1 << 16; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const float half = widened(Float16{bits}), brain = widened(Bfloat16{bits});
    wrong +=
        std::isnan(half) ? !std::isnan(widened(to_float16(half))) : to_float16(half).bits != bits;
    wrong += std::isnan(brain) ? !std::isnan(widened(to_bfloat16(brain)))
                               : to_bfloat16(brain).bits != bits;
  }
  CHECK(wrong == 0);
}

TEST_CASE("numbers between two are rounded to the nearest, and ties to even") {
  int wrong = 0;
  const auto check = [&](auto narrow, int last) {
    for (int i = 0; i < last; ++i) {
      using Number = decltype(narrow(0.0f));
      const auto number = [](int bits) {
        return widened(Number{static_cast<std::uint16_t>(bits)});
      };
      const double below = number(i), above = number(i + 1);
      const auto middle = static_cast<float>((below + above) / 2);
      wrong += narrow(middle).bits != (i % 2 == 0 ? i : i + 1);
      wrong += narrow(std::nextafter(middle, static_cast<float>(below))).bits != i;
      wrong += narrow(std::nextafter(middle, static_cast<float>(above))).bits != i + 1;
      wrong += narrow(-middle).bits != (0x8000 | (i % 2 == 0 ? i : i + 1));
    }
  };
  check([](float x) { return to_float16(x); }, 0x7bff);
  check([](float x) { return to_bfloat16(x); }, 0x7f7f);
  CHECK(wrong == 0);
}

TEST_CASE("what is out of range is infinite, and what is too small is zero") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  CHECK(widened(to_float16(65504)) == 65504);
  CHECK(widened(to_float16(65519)) == 65504);
  CHECK(widened(to_float16(65520)) == infinity);
  CHECK(widened(to_float16(-1e30f)) == -infinity);
  CHECK(to_float16(0x1p-26f).bits == 0);
  CHECK(to_float16(-0.0f).bits == 0x8000);
  CHECK(widened(to_float16(0x1p-24f)) == 0x1p-24f);
  CHECK(widened(to_bfloat16(std::numeric_limits<float>::max())) == infinity);
  CHECK(std::isnan(widened(to_bfloat16(std::numeric_limits<float>::quiet_NaN()))));
}
