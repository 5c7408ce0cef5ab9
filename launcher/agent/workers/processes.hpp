// Finds and ends every process below this one.
//
// A process can leave its group, its session and its parent, but not its nearest subreaper
// (prctl(2)): when its parent dies, it becomes the subreaper's child. So "everything below me" is a
// tree that can be walked in /proc, whatever a program did to become a daemon. Process groups alone
// miss processes that called setsid, a mark in the environment misses those that cleaned it, and
// control groups need rights that users do not have.
#pragma once

#include <sys/types.h>

#include <set>
#include <vector>

#include "base/time.hpp"

namespace elasticrun::launcher::agent::workers {

// Makes this process the new parent of orphans below it.
void become_subreaper();

std::vector<pid_t> children_of(pid_t pid);
// Sends SIGKILL to a child of this process and everything below it. Only to those: a pid that was
// given to another process meanwhile is noticed.
void kill_tree(pid_t child);
// The same without the child itself.
void kill_below(pid_t child);
// Sends the signal to the child and everything below it, but only to processes that have a handler
// for it: it would kill a process to which USR1 means nothing.
void signal_who_catches(pid_t child, int signal);
// Reaps children, and kills those that are none of these shims. Orphans become children of the
// agent only when a shim was killed, or by a hook; no other process would end them. `hook` is left
// to the code that has started it.
void end_strays(const std::set<pid_t>& shims, pid_t hook);
// Sends SIGKILL to everything below this process, again whenever one of the processes has gone,
// until none is left; reaps them. False: some are still there after `limit` (stuck in the kernel).
bool end_descendants(Duration limit);

}  // namespace elasticrun::launcher::agent::workers
