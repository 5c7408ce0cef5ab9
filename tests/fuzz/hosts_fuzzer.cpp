// Any bytes as a host file and as a list: no crash, no unbounded growth, and what parses keeps the
// promises that the launcher relies on.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.hpp"
#include "launcher/hosts.hpp"

namespace {

void promises(const elasticrun::Result<std::vector<elasticrun::launcher::Host>>& hosts) {
  if (!hosts) {
    ER_CHECK(!hosts.error().text.empty());
    ER_CHECK(hosts.error().text.find('\n') == std::string::npos);
    return;
  }
  ER_CHECK(!hosts->empty() && hosts->size() <= elasticrun::launcher::hosts_max);
  for (const auto& host : *hosts) {
    ER_CHECK(!host.name.empty() && host.name.front() != '-');
    ER_CHECK(host.user.empty() || host.user.front() != '-');
    ER_CHECK(host.slots >= 0 && host.slots <= elasticrun::launcher::slots_per_host_max);
    ER_CHECK(host.line >= 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  promises(elasticrun::launcher::parse_hosts(text, "fuzz"));
  promises(elasticrun::launcher::parse_host_list(text, "fuzz"));
  return 0;
}
