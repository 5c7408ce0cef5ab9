// Tables of states: the name and meaning of each state, and which state follows which. The manual
// page elasticrun-states(7) is made from them.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace elasticrun::job {

// A row for a state or for an event; the rows of a table are in the order of the enum.
template <class Value>
struct Named {
  Value value;
  std::string_view name;
  std::string_view meaning{};  // only for states
};

template <class Value, std::size_t n>
constexpr std::string_view name_in(const std::array<Named<Value>, n>& table, Value value) {
  return table[static_cast<std::size_t>(value)].name;
}

template <class State, class Turn>
struct Transition {
  State from;
  Turn turn;
  State to;
};

// The state that follows. A pair that is not in the table does not change the state.
template <class State, class Turn, std::size_t n>
constexpr State next_in(const std::array<Transition<State, Turn>, n>& table, State from,
                        Turn turn) {
  for (const auto& row : table)
    if (row.from == from && row.turn == turn) return row.to;
  return from;
}

}  // namespace elasticrun::job
