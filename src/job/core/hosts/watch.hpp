// Which hosts and workers are silent, which hosts have lost their connection, what of that was
// reported to the user, and which hosts are there in vain.
#pragma once

#include "job/core/hosts/shortage.hpp"
#include "job/core/hosts/troubles.hpp"
#include "job/core/hosts/unused_hosts.hpp"
#include "rendezvous/liveness.hpp"
#include "rendezvous/suspects.hpp"

namespace elasticrun::job::hosts {

struct Watch {
  rendezvous::Liveness liveness;
  rendezvous::Suspects suspects{};  // hosts without a connection, which may dial again
  Troubles troubles{};              // problems of hosts, to be reported
  Shortage shortage{};              // too few slots while workers run
  UnusedHosts unused;
};

}  // namespace elasticrun::job::hosts
