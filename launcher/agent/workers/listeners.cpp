// See listeners.hpp.
#include "launcher/agent/workers/listeners.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace elasticrun::launcher::agent::workers {

// A line is "  12: 00000000:0016 00000000:0000 0A ...": number, own and other address with their
// ports, state; 0A is TCP_LISTEN.
bool listens(std::string_view table, std::uint16_t port) {
  const std::string own = fmt::format(":{:04X} ", port);
  while (!table.empty()) {
    std::string_view line = table.substr(0, table.find('\n'));
    table.remove_prefix(std::min(line.size() + 1, table.size()));
    line.remove_prefix(std::min(line.find(": "), line.size()));
    const auto at = line.find(own, 1);
    if (at == line.npos || at > line.find(' ', 2)) continue;
    const auto other = line.find(' ', at + own.size());
    if (other != line.npos && line.substr(other, 4) == " 0A ") return true;
  }
  return false;
}

}  // namespace elasticrun::launcher::agent::workers
