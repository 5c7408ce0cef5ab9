// Calls functions of the program from inside the training.
//
// A program may fork in such a function. The child has copies of the connections, and a shutdown of
// a copy shuts down the parent's connection, too. So a child that returns from the function, or
// throws, ends at once; all else in it is left as it is.
#pragma once

namespace elasticrun::worker::training {

// How many forks lie between the process that has loaded this library and this one. A handler of
// fork(2) counts them, because a system call in each step would cost more than the call itself.
int forks();

// Ends the forked child with 0, or with 1 and a line if the function has failed in it.
[[noreturn]] void end_forked_child(int code);

// Returns what the function returns.
template <class Function>
int call_program(const Function& function) {
  const int before = forks();
  int code = 1;
  try {
    code = function();
  } catch (...) {
    if (forks() == before) throw;
  }
  if (forks() != before) end_forked_child(code);
  return code;
}

}  // namespace elasticrun::worker::training
