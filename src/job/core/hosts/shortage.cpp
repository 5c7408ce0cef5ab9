// See shortage.hpp.
#include "job/core/hosts/shortage.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace elasticrun::job::hosts {
namespace {

std::string what_follows(const Shortage::Look& now) {
  if (!now.running) return fmt::format("waiting up to {} for more", to_text(now.patience));
  if (now.slots >= now.minimum) return "the job continues with these";
  return fmt::format(
      "the job continues with at least {}, also on slots that are gone, where no worker is "
      "replaced",
      now.minimum);
}

}  // namespace

std::optional<HostsNoted> Shortage::look(const Look& now) {
  if (now.few == told_) return std::nullopt;
  told_ = now.few;
  const std::string named = now.source.empty() ? "" : now.source + " names ";
  const std::string left = now.source.empty() ? " are left" : "";
  if (now.few)
    return HostsNoted{false, fmt::format("{}{}{}; {}", named, *now.few, left, what_follows(now))};
  return HostsNoted{true,
                    now.source.empty()
                        ? fmt::format("there are hosts for {} again", counted(now.slots, "worker"))
                        : fmt::format("{}hosts for {} again", named, counted(now.slots, "worker"))};
}

}  // namespace elasticrun::job::hosts
