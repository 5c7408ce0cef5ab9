#include "job/system.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/types.h>

#include <chrono>

#include "base/check.hpp"

namespace elasticrun::job {

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  ER_CHECK(::getrandom(bytes.data(), count, 0) == static_cast<ssize_t>(count));
  return bytes;
}

std::string utc_now() {
  const auto now = std::chrono::system_clock::now();
  const auto second = std::chrono::floor<std::chrono::seconds>(now);
  const auto ms = (now - second) / std::chrono::milliseconds(1);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(second), ms);
}

}  // namespace elasticrun::job
