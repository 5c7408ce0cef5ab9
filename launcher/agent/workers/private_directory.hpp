// The agent's private directory, mode 0700: its socket lies there, and copies of programs that have
// no better place.
//
// It is made in TMPDIR or /tmp and not in XDG_RUNTIME_DIR, which systemd-logind removes with the
// user's last session (logind.conf(5)): a job goes on when ssh is lost, and must be able to start
// workers then. What cleans TMPDIR by age leaves alone a directory on which somebody holds a lock
// (tmpfiles.d(5): "applications can take a BSD file lock themselves"), so the agent and its
// watchdog hold one. The lock also tells a directory in use from one that was left behind.
#pragma once

#include <string>

#include "net/sockets.hpp"

namespace elasticrun::launcher::agent::workers {

struct PrivateDirectory {
  std::string path;  // empty: none can be made, and errno says why
  net::Fd lock;      // both processes of a fork hold it
};

// Also removes what agents of this host that are gone have left in the same place.
PrivateDirectory make_private_directory();

// Holds the directory until it is closed. Of -1: somebody holds it, or there is none.
net::Fd lock_directory(const std::string& path);

// So that cleaners by age see that it is in use.
void touch(const std::string& path);

// The directory with everything in it (one level).
void remove_directory(const std::string& directory);

}  // namespace elasticrun::launcher::agent::workers
