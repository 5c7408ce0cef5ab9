// How the members of a world agree, inside a step's own reduction, on what follows that step: a
// switch to the next world, or a save of the state.
//
// Each member adds these numbers; all see the same sums. A switch is agreed when every member adds
// 1. A save is agreed when every member adds the number of the same save: that is seen from the sum
// of the numbers and that of their squares (see agreement.hpp). The numbers are taken modulo 7, so
// that the sums stay exact in a float; a controller never asks for two saves at a time. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace elasticrun::worker::core {

struct Votes {
  // The numbers as they stand in the reduction.
  using Row = std::array<double, 3>;

  double change = 0;       // 1: ready to switch to the prepared world
  double save = 0;         // digit of the save that this member is asked for; 0: none
  double save_square = 0;  // its square

  Row row() const { return {change, save, save_square}; }
  static Votes of(const Row& row) { return {row[0], row[1], row[2]}; }

  bool operator==(const Votes&) const = default;
  Votes& operator+=(const Votes& other) {
    change += other.change;
    save += other.save;
    save_square += other.save_square;
    return *this;
  }

  bool agree_to_change(std::size_t members) const { return change == static_cast<double>(members); }
  // `number` is that of the save that this member is asked for.
  bool agree_to_save(std::int64_t number, std::size_t members) const {
    const auto n = static_cast<double>(members), digit = digit_of(number);
    return save == n * digit && save_square == n * digit * digit;
  }
  static double digit_of(std::int64_t number) { return static_cast<double>(number % 7 + 1); }
};

}  // namespace elasticrun::worker::core
