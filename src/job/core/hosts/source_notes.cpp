// See source_notes.hpp.
#include "job/core/hosts/source_notes.hpp"

#include <fmt/format.h>

#include <utility>

namespace elasticrun::job::hosts {
namespace {

constexpr const char* stay = "; the hosts stay as they are";

}  // namespace

SourceNotes::SourceNotes(std::string name, bool asked_again)
    : name_(std::move(name)), asked_again_(asked_again) {}

std::optional<HostsNoted> SourceNotes::away(const std::string& why, Time now) {
  if (away_since_ == never) away_since_ = now;
  if (now < away_since_ + away_for_good || why == away_) return std::nullopt;
  away_ = why;
  return HostsNoted{false, fmt::format("{} cannot be read: {}{} until it can", name_, why, stay)};
}

std::optional<HostsNoted> SourceNotes::back() {
  away_since_ = never;
  if (std::exchange(away_, {}).empty()) return std::nullopt;
  return HostsNoted{true, name_ + " can be read again"};
}

std::optional<HostsNoted> SourceNotes::trouble(const std::string& what) {
  if (asked_again_ && (what == trouble_ || troubles_ == troubles_max)) return std::nullopt;
  trouble_ = what;
  const bool last = ++troubles_ == troubles_max && asked_again_;
  return HostsNoted{false, what + stay + (last ? "; no more is logged until it works again" : "")};
}

std::optional<HostsNoted> SourceNotes::well() {
  troubles_ = 0;
  if (std::exchange(trouble_, {}).empty()) return std::nullopt;
  return HostsNoted{true, name_ + " names hosts again"};
}

}  // namespace elasticrun::job::hosts
