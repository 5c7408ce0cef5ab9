// A copy of the last committed state, beside the program's memory: a loop of one's own goes back to
// it when the step that it has applied does not count.
//
// train() needs no copy, since it lets the program apply only what is certain to be committed. In a
// loop of one's own the library does not know when apply begins, and a program that undoes its step
// by itself may overwrite a newer state, which the others have committed meanwhile. Memory on the
// GPU is copied on the GPU, after what the program has enqueued.
#pragma once

#include <string>
#include <vector>

#include "worker/state/state.hpp"

namespace elasticrun::worker::state {

class StateCopy {
 public:
  // Allocates the memory. `table` is sealed and outlives this. Throws std::bad_alloc.
  explicit StateCopy(StateTable& table);

  // take() copies the state, put_back() restores it from the copy; both with what the state source
  // has, which has the arrays of the copy afterwards: a step may have added some, or put others in
  // their place. They throw GroupBroken when the GPU has failed, and SourceFailed; take()
  // std::bad_alloc.
  void take();
  void put_back();
  // Whether the state in host memory is still as it was taken; memory on the GPU is not checked.
  bool holds() const;

 private:
  struct Piece {
    Segment segment;  // as it was taken
    gpu::Arithmetic::Memory copy;
  };
  void copy(const Piece& piece, void* to, const void* from) const;

  void make_pieces();

  StateTable& table_;
  const gpu::Gpu* const gpu_;
  std::vector<Piece> pieces_;
  Layout late_;  // what the source had listed
  std::string objects_;
};

}  // namespace elasticrun::worker::state
