// Who is silent, whose connection is lost, and what of it a person was told.
#pragma once

#include "job/core/hosts/shortage.hpp"
#include "job/core/hosts/troubles.hpp"
#include "rendezvous/liveness.hpp"
#include "rendezvous/suspects.hpp"

namespace elasticrun::job::hosts {

struct Watch {
  rendezvous::Liveness liveness;
  rendezvous::Suspects suspects{};  // hosts that may dial again
  Troubles troubles{};              // of hosts, to be told
  Shortage shortage{};              // of slots, while workers run
};

}  // namespace elasticrun::job::hosts
