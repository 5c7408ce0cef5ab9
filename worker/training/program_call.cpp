// See program_call.hpp.
#include "worker/training/program_call.hpp"

#include <pthread.h>
#include <unistd.h>

#include <string_view>

namespace elasticrun::worker::training {
namespace {

int forks_so_far = 0;  // written by a child before any other code of it runs

[[maybe_unused]] const int watched = ::pthread_atfork(nullptr, nullptr, [] { ++forks_so_far; });

}  // namespace

int forks() { return forks_so_far; }

void end_forked_child(int code) {
  constexpr std::string_view line =
      "elasticrun: a forked child failed inside a function of the training; it ends with 1\n";
  if (code != 0) (void)!::write(STDERR_FILENO, line.data(), line.size());
  ::_exit(code != 0 ? 1 : 0);
}

}  // namespace elasticrun::worker::training
