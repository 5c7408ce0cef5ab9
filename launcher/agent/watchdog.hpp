// The watchdog: the process above the agent, which does nothing but wait for the agent's end and
// then clean up.
//
// The agent can be killed from outside (the kernel out of memory, a person), and then nobody would
// be left who knows its workers. A parent-death signal is not enough: it reaches only children and
// kills them before they could clean up. So two processes watch each other: the agent sees the
// watchdog's end as the end of a socket, the watchdog is the agent's parent. Both are subreapers;
// who remains ends everything below itself.
#pragma once

#include <functional>
#include <string>

namespace elasticrun::launcher::agent {

// What the watchdog gives to the agent proper.
struct Guarded {
  int watchdog_socket = -1;  // readable (end of file) when the watchdog is gone; see goodbye.hpp
  std::string directory;     // private_directory.hpp; removed by whoever is last
};

// Forks. In the child runs `agent` and its result is the exit code; the parent waits for the child,
// passes SIGTERM on to it, cleans up and returns its code (128 + signal when it was killed).
// `by_hand`: a person has started it and sees it, so SIGINT is passed on, too.
int run_guarded(bool by_hand, const std::function<int(const Guarded&)>& agent);

}  // namespace elasticrun::launcher::agent
