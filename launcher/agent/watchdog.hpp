// The watchdog: the process above the agent, which only waits for the agent's end and then cleans
// up.
//
// The agent can be killed from outside (by the kernel out of memory, by a user), and then no
// process would be left that knows its workers. A parent-death signal is not enough: it reaches
// only children, and kills them before they could clean up. So two processes watch each other: the
// agent sees the watchdog's end as the end of a socket, and the watchdog is the agent's parent.
// Both are subreapers; the one that remains ends everything below itself.
#pragma once

#include <functional>
#include <string>

namespace elasticrun::launcher::agent {

// What the watchdog gives to the agent proper.
struct Guarded {
  int watchdog_socket = -1;  // readable (end of file) when the watchdog is gone; see goodbye.hpp
  std::string directory;     // private_directory.hpp; the last of the two processes removes it
};

// Forks. The child runs `agent` and exits with its result. The parent waits for the child, passes
// TERM, INT, USR1 and USR2 on to it, cleans up and returns the child's exit code (128 + signal when
// it was killed). `by_hand`: a user has started it at a terminal, so SIGINT is not ignored.
int run_guarded(bool by_hand, const std::function<int(const Guarded&)>& agent);

}  // namespace elasticrun::launcher::agent
