// See xid.hpp.
#include "launcher/machine/xid.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/numbers.hpp"

namespace elasticrun::launcher::machine {
namespace {

constexpr std::string_view reset = "reset it (nvidia-smi --gpu-reset) or reboot the host";
constexpr std::string_view power =
    "switch the host off and on, and look at the GPU's power, cooling and seat";
constexpr std::string_view exchange = "reset it; if that recurs, have it replaced";

struct Kind {
  std::int32_t number;
  std::string_view meaning;
  std::string_view remedy;
};

constexpr Kind fatal[] = {
    {46, "has stopped processing", reset},
    {48, "has memory with an error that cannot be corrected", exchange},
    {62, "has a micro-controller that has halted", reset},
    {64, "could not put bad memory aside", exchange},
    {79, "has fallen off the bus", power},
    {95, "has a memory error that may have reached other programs", exchange},
    {119, "has a system processor that does not answer", reset},
    {120, "has a system processor that has failed", reset},
    {140, "has memory with an error that was not recovered from", exchange},
    {143, "could not be initialised", reset},
    {154, "must be reset, as its driver says", reset},
};

constexpr std::int32_t recovery_action =
    154;  // "... changed from 0x0 (None) to 0x1 (GPU Reset ...)"

}  // namespace

std::optional<Xid> parse_xid(std::string_view line) {
  constexpr std::string_view begin = "NVRM: Xid (";
  const auto at = line.find(begin);
  if (at == line.npos) return std::nullopt;
  line.remove_prefix(at + begin.size());
  if (line.starts_with("PCI:")) line.remove_prefix(4);
  const auto close = line.find("): ");
  if (close == line.npos) return std::nullopt;
  // After the location there may be the MIG instance that the message is about.
  const std::string_view location = line.substr(0, std::min(close, line.find(' ')));
  line.remove_prefix(close + 3);
  const auto number = whole_number(line.substr(0, line.find_first_not_of("0123456789")));
  if (location.find(':') == location.npos || !number || *number > 10'000) return std::nullopt;
  const auto comma = line.find(", ");
  return Xid{std::string(location), static_cast<std::int32_t>(*number),
             std::string(comma == line.npos ? "" : line.substr(comma + 2))};
}

bool is_of(const Xid& xid, std::string_view location) {
  return location.starts_with(xid.location) &&
         (location.size() == xid.location.size() || location[xid.location.size()] == '.');
}

std::optional<std::string> loss(const Xid& xid) {
  const auto kind = std::ranges::find(fatal, xid.number, &Kind::number);
  if (kind == std::end(fatal)) return std::nullopt;
  if (xid.number == recovery_action && xid.text.find("to 0x0 ") != xid.text.npos)
    return std::nullopt;
  return fmt::format("{} (Xid {}); {}", kind->meaning, xid.number, kind->remedy);
}

}  // namespace elasticrun::launcher::machine
