// See wall_clock.hpp.
#include "job/driver/wall_clock.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>

namespace elasticrun::job::driver {

std::string utc_now() {
  const auto now = std::chrono::system_clock::now();
  const auto second = std::chrono::floor<std::chrono::seconds>(now);
  const auto ms = (now - second) / std::chrono::milliseconds(1);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(second), ms);
}

}  // namespace elasticrun::job::driver
