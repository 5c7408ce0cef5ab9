// See stream_flags.hpp.
#include "cli/run/stream_flags.hpp"

#include <fmt/format.h>

#include <vector>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "launcher/hosts/host_line.hpp"

namespace elasticrun::cli::run {
namespace {

constexpr int both = job::standard_output | job::standard_error;

std::optional<int> number_up_to(std::string_view text, std::int64_t most) {
  const auto value = whole_number(text);
  if (!value || *value < 0 || *value > most) return std::nullopt;
  return static_cast<int>(*value);
}

std::optional<int> slot_in(std::string_view text) {
  return number_up_to(text, launcher::hosts::slots_per_host_max - 1);
}

// "3", or "0:1,1:2".
std::optional<job::StreamChoice> parse_choice(std::string_view text) {
  job::StreamChoice choice;
  if (const auto streams = number_up_to(text, both)) {
    choice.of_all = *streams;
    return choice;
  }
  const auto parts = words(text, ",");
  for (const std::string_view part : parts) {
    const auto colon = part.find(':');
    if (colon == part.npos) return std::nullopt;
    const auto slot = slot_in(part.substr(0, colon));
    const auto streams = number_up_to(part.substr(colon + 1), both);
    if (!slot || !streams) return std::nullopt;
    choice.of_slot[*slot] = *streams;
  }
  if (parts.empty()) return std::nullopt;
  return choice;
}

}  // namespace

Result<job::Streams> read_stream_flags(const Settings& settings) {
  job::Streams streams;
  struct Row {
    FlagName name;
    std::optional<job::StreamChoice> job::Streams::*member;
  };
  const Row rows[] = {{"redirects", &job::Streams::redirects}, {"tee", &job::Streams::tee}};
  for (const auto& [name, member] : rows) {
    const Setting* const setting = find(settings, name);
    if (!setting) continue;
    streams.*member = parse_choice(setting->values.back());
    if (!(streams.*member))
      return Error{
          fmt::format("{}: '{}' names no streams; write 1 (standard output), 2 (standard "
                      "error) or 3 for all workers, or 0:3,1:2 for local ranks 0 and 1",
                      setting->place, setting->values.back())};
    if (!find(settings, "log-dir"))
      return Error{fmt::format("{}: there are no log files; add --log-dir DIR", setting->place)};
  }
  if (const Setting* const filter = find(settings, "local-ranks-filter"))
    for (const std::string_view part : words(filter->values.back(), ", ")) {
      const auto slot = slot_in(part);
      if (!slot)
        return Error{fmt::format("{}: '{}' is no local rank; write 0,1", filter->place, part)};
      streams.slots.insert(*slot);
    }
  return streams;
}

}  // namespace elasticrun::cli::run
