// The state as it was committed last, kept beside the program's memory: what a loop of one's own
// goes back to when the step that it has applied does not count.
//
// train() needs none, since it lets the program apply only what is certain to be committed. In a
// loop of one's own the library does not know when apply begins, and a program that undoes its step
// by itself may overwrite a newer state, which the others have committed meanwhile. What lies on
// the GPU is copied there, behind what the program has enqueued.
#pragma once

#include <vector>

#include "worker/state/state.hpp"

namespace elasticrun::worker::state {

class StateCopy {
 public:
  // Of a sealed table, which outlives this. Throws std::bad_alloc.
  explicit StateCopy(const StateTable& table);

  // Both throw GroupBroken when the GPU has failed.
  void take();
  void put_back() const;
  // Whether the state of the host's memory is still as it was taken; the GPU's is not looked at.
  bool holds() const;

 private:
  struct Piece {
    Segment segment;
    gpu::Arithmetic::Memory copy;
  };
  void copy(const Piece& piece, void* to, const void* from) const;

  const gpu::Gpu* const gpu_;
  std::vector<Piece> pieces_;
};

}  // namespace elasticrun::worker::state
