// The agent's private directory, mode 0700: its socket lies there, and copies of programs for which
// there is no better place.
//
// It is made in TMPDIR or /tmp and not in XDG_RUNTIME_DIR, which systemd-logind removes with the
// user's last session (logind.conf(5)): a job goes on when ssh is lost, and must be able to start
// workers then. Cleaners of TMPDIR by age leave alone a directory that a process holds locked
// (tmpfiles.d(5): "applications can take a BSD file lock themselves"), so the agent and its
// watchdog hold a lock. The lock also distinguishes a directory in use from one that was left
// behind.
#pragma once

#include <string>

#include "base/result.hpp"
#include "net/sockets.hpp"

namespace elasticrun::launcher::agent::workers {

struct PrivateDirectory {
  std::string path;
  net::Fd lock;  // both processes of a fork hold it
};

// Also removes what dead agents of this host have left in the same place.
Result<PrivateDirectory> make_private_directory();

// Locks the directory until the descriptor is closed. The descriptor is -1 if another process holds
// the lock, or there is no such directory.
net::Fd lock_directory(const std::string& path);

// Updates the file's times, so that cleaners by age see that it is in use.
void touch(const std::string& path);

// Removes the directory with everything in it (one level).
void remove_directory(const std::string& directory);

}  // namespace elasticrun::launcher::agent::workers
