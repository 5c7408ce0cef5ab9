// elasticrun/state_source.hpp: state that a program makes later; included by elasticrun.hpp.
#pragma once

#include <cstddef>
#include <functional>
#include <new>
#include <span>
#include <string>

#include "elasticrun/step.hpp"

namespace elasticrun {

// What a state source has at present. Throws Misuse: a name or memory is missing.
class Listing {
 public:
  explicit Listing(elasticrun_listing* listing) : listing_(listing) {}

  // An array that steps change; it stays where it is until list is called again.
  void array(const std::string& name, void* data, std::size_t bytes) {
    check(elasticrun_list_array(listing_, name.c_str(), data, bytes));
  }
  template <class T, std::size_t extent>
  void array(const std::string& name, std::span<T, extent> data) {
    array(name, data.data(), data.size_bytes());
  }
  // Small objects as bytes that only take_objects reads.
  void objects(std::span<const std::byte> bytes) {
    check(elasticrun_list_objects(listing_, bytes.data(), bytes.size()));
  }

 private:
  static void check(elasticrun_status status) {
    if (status == ELASTICRUN_MISUSE) throw Misuse("an array of the state source has no memory");
    if (status != ELASTICRUN_OK) throw std::bad_alloc();
  }

  elasticrun_listing* listing_;
};

// State that is not there from the start, such as what an optimizer allocates in its first step;
// see elasticrun_source. The functions run between two steps, and what they throw comes out of
// the call that the program has made.
struct StateSource {
  std::function<void(Listing&)> list;
  // Afterwards list has arrays of these names and sizes.
  std::function<void(std::span<const elasticrun_array>)> make_room;
  // Empty: there are none.
  std::function<void(std::span<const std::byte>)> take_objects = {};
};

}  // namespace elasticrun
