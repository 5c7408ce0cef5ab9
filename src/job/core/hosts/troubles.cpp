// See troubles.hpp.
#include "job/core/hosts/troubles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/name_ranges.hpp"

namespace elasticrun::job::hosts {
namespace {

constexpr Duration patience = std::chrono::milliseconds(300);

std::string pattern_of(const std::string& host, const std::string& text) {
  std::istringstream words(text);
  std::string pattern;
  for (std::string word; words >> word;) {
    const bool own = word.find(host) != std::string::npos ||
                     word.find_first_of("0123456789") != std::string::npos;
    pattern += own ? "* " : word + ' ';
  }
  return pattern;
}

}  // namespace

void Troubles::add(const std::string& host, const std::string& text, Time now) {
  std::string pattern = pattern_of(host, text);
  if (std::exchange(last_[host], pattern) == pattern) return;
  const auto alike = std::ranges::find(groups_, pattern, &Group::pattern);
  if (alike == groups_.end())
    groups_.push_back({std::move(pattern), text, {host}, now + patience});
  else
    alike->hosts.push_back(host);
}

std::vector<std::string> Troubles::tell(Time now, bool all) {
  std::vector<std::string> lines;
  std::erase_if(groups_, [&](const Group& group) {
    if (!all && now < group.due) return false;
    const std::string& first = group.hosts.front();
    lines.push_back(group.hosts.size() == 1
                        ? fmt::format("{}: {}", first, group.text)
                        : fmt::format("{} ({} hosts), {} for one: {}", fold_names(group.hosts),
                                      group.hosts.size(), first, group.text));
    return true;
  });
  return lines;
}

Time Troubles::wake_at() const {
  Time at = never;
  for (const Group& group : groups_) at = std::min(at, group.due);
  return at;
}

}  // namespace elasticrun::job::hosts
