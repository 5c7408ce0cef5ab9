// The data plane between CPUs: Gloo over TCP. No Gloo type shows here.
#pragma once

#include <memory>
#include <string>

#include "worker/collective/group.hpp"

namespace elasticrun::worker::collective {

struct GlooOptions {
  // An IP address of this machine that members on other machines can reach. A world on one machine
  // always uses the loopback address instead.
  std::string address = "127.0.0.1";
};

// Collectives have no time limit of their own: the controller finds a hang and aborts the group.
std::unique_ptr<DataPlane> make_gloo_plane(const GlooOptions& options);

}  // namespace elasticrun::worker::collective
