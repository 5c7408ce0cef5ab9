// Parses any bytes as a host file, as a host list and as a choice among hosts: no crash, no
// unbounded growth, and what parses keeps the promises that the launcher relies on.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.hpp"
#include "launcher/hosts/host_filter.hpp"
#include "launcher/hosts/hosts.hpp"
#include "launcher/hosts/plan.hpp"

namespace {

using namespace elasticrun::launcher::hosts;

void promises(const elasticrun::Result<std::vector<Host>>& hosts) {
  if (!hosts) {
    ER_CHECK(!hosts.error().text.empty());
    ER_CHECK(hosts.error().text.find('\n') == std::string::npos);
    return;
  }
  ER_CHECK(!hosts->empty() && hosts->size() <= hosts_max);
  for (const auto& host : *hosts) {
    ER_CHECK(!host.name.empty() && host.name.front() != '-');
    ER_CHECK(host.user.empty() || host.user.front() != '-');
    ER_CHECK(host.slots >= 0 && host.slots <= slots_per_host_max);
    ER_CHECK(host.line >= 1);
  }
}

// The first line lists hosts, the second includes, the rest excludes. The chosen hosts must be
// among the listed ones, in the same order, with no more slots.
void choose(std::string_view text) {
  constexpr int default_slots = 3;
  const auto first = std::min(text.find('\n'), text.size());
  const auto hosts = parse_host_list(text.substr(0, first), "fuzz");
  text.remove_prefix(std::min(first + 1, text.size()));
  const auto second = std::min(text.find('\n'), text.size());
  auto include = parse_include(text.substr(0, second), "fuzz");
  text.remove_prefix(std::min(second + 1, text.size()));
  auto exclude = parse_exclude(text, "fuzz");
  promises(include);
  promises(exclude);
  if (!hosts || !include || !exclude) return;
  first_unknown(*include, *hosts);
  const auto left = chosen(*hosts, {*include, *exclude});
  auto from = hosts->begin();
  for (const Host& host : left) {
    from =
        std::find_if(from, hosts->end(), [&](const Host& h) { return key_of(h) == key_of(host); });
    ER_CHECK(from != hosts->end());
    ER_CHECK(slots_of(host, default_slots) <= slots_of(*from, default_slots));
    ++from;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  promises(parse_hosts(text, "fuzz"));
  promises(parse_host_list(text, "fuzz"));
  choose(text);
  return 0;
}
