// The data plane between CPUs: Gloo over TCP. No Gloo type shows here.
#pragma once

#include <memory>
#include <string>

#include "worker/collective/group.hpp"

namespace elasticrun::worker::collective {

struct GlooOptions {
  // An IP address of this machine that members on other machines reach. A world on one machine
  // meets on its loopback, whatever this is.
  std::string address = "127.0.0.1";
};

// Collectives have no limit of time of their own: a hang is the controller's to find, and it aborts
// the group.
std::unique_ptr<DataPlane> make_gloo_plane(const GlooOptions& options);

}  // namespace elasticrun::worker::collective
