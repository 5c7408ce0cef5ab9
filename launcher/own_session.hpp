// What a process of ours begins with when Boost.Process starts it: a session of its own, so that a
// Ctrl-C at our terminal is ours alone, none of our descriptors, and the signals that programs
// expect.
#pragma once

#include <unistd.h>

#include <boost/process/v2/process.hpp>
#include <csignal>

namespace elasticrun::launcher {

// Runs in the child between fork and exec.
struct OwnSession {
  template <class Launcher>
  boost::system::error_code on_exec_setup(Launcher&, const boost::process::v2::filesystem::path&,
                                          const char* const*&) {
    ::setsid();
    ::signal(SIGPIPE, SIG_DFL);
    ::close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
    return {};
  }
};

}  // namespace elasticrun::launcher
