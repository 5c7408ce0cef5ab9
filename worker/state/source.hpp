// State that is not there from the start, or not in the same memory: an optimizer that allocates in
// its first step, small objects of a program in Python. The program says what there is when it is
// wanted (for a newcomer, for a save), makes room for what another member has, and takes over its
// objects. All in between is registered memory like any other.
#pragma once

#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "worker/state/layout.hpp"

namespace elasticrun::worker::state {

// A numeric array in the program's memory.
struct Array {
  std::string name;
  void* data = nullptr;
  std::size_t bytes = 0;
};

// What a source has at a time: arrays in an order that is the same on all members, and the objects
// as bytes that only the program reads, which may differ between members that hold the same.
struct Listing {
  std::vector<Array> arrays;
  std::string objects;
};

// The program's functions; errors are texts for the user. Called on the training thread, between
// two steps.
struct Source {
  static constexpr std::size_t objects_bytes_max = 64u << 20;

  std::function<Result<Listing>()> list;
  // Afterwards list() has arrays with these names and sizes; the values of those that were there
  // before are as before.
  std::function<Result<void>(const Layout&)> make_room;
  // The arrays have their new values.
  std::function<Result<void>(std::string_view)> take_objects;
};

// The program's source has failed, or cannot do what is asked of it.
struct SourceFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace elasticrun::worker::state
