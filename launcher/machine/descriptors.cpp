// See descriptors.hpp.
#include "launcher/machine/descriptors.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

namespace elasticrun::launcher::machine {

std::size_t raise_descriptor_limit() {
  constexpr rlim_t enough = 65536;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return enough;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = std::max(before, std::min(limit.rlim_max, enough));
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = before;
  return static_cast<std::size_t>(limit.rlim_cur);
}

std::string too_few_descriptors(std::string_view what, std::size_t needed, std::size_t limit) {
  return fmt::format(
      "{} need about {} descriptors, and the limit is {}; raise the hard limit (ulimit -Hn, "
      "/etc/security/limits.conf, or LimitNOFILE of systemd)",
      what, needed, limit);
}

}  // namespace elasticrun::launcher::machine
