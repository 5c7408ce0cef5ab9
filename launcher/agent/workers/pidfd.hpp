// Descriptors of processes (pidfd_open(2), Linux 5.3): unlike a pid, a pidfd never comes to mean
// another process.
//
// Called by number: glibc 2.36 declares the functions for C only, earlier versions not at all.
#pragma once

#include <poll.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "net/sockets.hpp"

namespace elasticrun::launcher::agent::workers {

// On failure -1 with errno: there is no such process, or the kernel has no pidfds (ENOSYS).
inline net::Fd open_process(pid_t pid) {
  return net::Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

// Whether the process has not ended. A process that waits to be reaped has ended.
inline bool lives(const net::Fd& process) {
  pollfd ended{process.get(), POLLIN, 0};
  return process.get() >= 0 && ::poll(&ended, 1, 0) == 0;
}

inline bool send_signal(const net::Fd& process, int signal) {
  return ::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0) == 0;
}

}  // namespace elasticrun::launcher::agent::workers
