// Calls functions of the program from inside the training.
//
// A program may fork in such a function. The child has copies of the connections, and a shutdown of
// a copy shuts down the parent's connection, too. So a child that returns from the function, or
// throws, ends at once; all else in it is left as it is.
#pragma once

#include <unistd.h>

namespace elasticrun::worker::training {

// Ends the forked child with 0, or with 1 and a line if the function has failed in it.
[[noreturn]] void end_forked_child(int code);

// Returns what the function returns. `owner` is the process that has opened the job.
template <class Function>
int call_program(int owner, const Function& function) {
  int code = 1;
  try {
    code = function();
  } catch (...) {
    if (::getpid() == owner) throw;
  }
  if (::getpid() != owner) end_forked_child(code);
  return code;
}

}  // namespace elasticrun::worker::training
