// A place for one worker on a host.
#pragma once

#include <compare>
#include <cstdint>

#include "base/ids.hpp"

namespace elasticrun::job {

struct SlotId {
  HostId host;
  std::int32_t index = 0;
  auto operator<=>(const SlotId&) const = default;
};

}  // namespace elasticrun::job
