// The types of numbers that a worker's gradients and buffers may have, and what each is on the
// host.
//
// The two types of 16 bits are only kept in memory: whoever computes with them widens them to float
// and rounds the result to the nearest, ties to even, as GPUs do.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace elasticrun::worker::collective {

enum class DataType : std::uint8_t { float32, float64, bfloat16, float16, int32, int64 };

inline constexpr std::size_t size_of(DataType type) {
  switch (type) {
    case DataType::float64:
    case DataType::int64:
      return 8;
    case DataType::float32:
    case DataType::int32:
      return 4;
    case DataType::bfloat16:
    case DataType::float16:
      break;
  }
  return 2;
}
inline constexpr const char* name_of(DataType type) {
  constexpr const char* names[] = {"float32", "float64", "bfloat16", "float16", "int32", "int64"};
  return names[static_cast<std::size_t>(type)];
}
// Integers are carried from rank to rank, but mean nothing on average.
inline constexpr bool is_integer(DataType type) {
  return type == DataType::int32 || type == DataType::int64;
}
inline constexpr bool has_16_bits(DataType type) { return size_of(type) == 2; }

struct Bfloat16 {
  std::uint16_t bits = 0;
};
struct Float16 {
  std::uint16_t bits = 0;
};

inline float widened(Bfloat16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

inline float widened(Float16 x) {
  const std::uint32_t sign = static_cast<std::uint32_t>(x.bits & 0x8000u) << 16;
  const std::uint32_t rest = x.bits & 0x7fffu;
  if (rest >= 0x7c00u)  // infinite, or not a number
    return std::bit_cast<float>(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  // A float's exponent has another bias; the multiplication also scales numbers below the least
  // exponent, whose bits are those of a denormal float.
  constexpr float bias = 0x1p112f;
  const float size = std::bit_cast<float>(rest << 13) * bias;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(size) | sign);
}

inline Bfloat16 to_bfloat16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<std::uint16_t>(bits >> 16 | 0x40u)};
  return {static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}

inline Float16 to_float16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  const std::uint32_t size = bits & 0x7fffffffu;
  const auto with_sign = [sign](std::uint32_t rest) {
    return Float16{static_cast<std::uint16_t>(sign | rest)};
  };
  if (size > 0x7f800000u) return with_sign(0x7e00u);
  if (size >= 0x477ff000u) return with_sign(0x7c00u);  // rounds to 65536 or more
  if (size < 0x38800000u) {
    // Adding 0.5 shifts the number so far down that float's own rounding leaves the bits wanted.
    const float shifted = std::bit_cast<float>(size) + 0.5f;
    return with_sign(std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u);
  }
  return with_sign((size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13);
}

inline void narrow(float from, Bfloat16& to) { to = to_bfloat16(from); }
inline void narrow(float from, Float16& to) { to = to_float16(from); }

// Calls f with a value of the type that a number of this type has on the host.
template <class F>
decltype(auto) with_type(DataType type, F&& f) {
  switch (type) {
    case DataType::float32:
      return f(float{});
    case DataType::float64:
      return f(double{});
    case DataType::bfloat16:
      return f(Bfloat16{});
    case DataType::float16:
      return f(Float16{});
    case DataType::int32:
      return f(std::int32_t{});
    case DataType::int64:
      break;
  }
  return f(std::int64_t{});
}

}  // namespace elasticrun::worker::collective
