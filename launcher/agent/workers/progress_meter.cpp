// See progress_meter.hpp.
#include "launcher/agent/workers/progress_meter.hpp"

#include <utility>

#include "base/numbers.hpp"
#include "base/text.hpp"

namespace elasticrun::launcher::agent::workers {
namespace {

constexpr std::string_view key = "samples=";
constexpr std::int64_t samples_max = std::int64_t{1} << 40;  // of one step

std::optional<std::int64_t> samples_in(std::string_view line) {
  for (const std::string_view word : words(line))
    if (word.starts_with(key)) {
      const auto samples = whole_number(word.substr(key.size()));
      if (samples && *samples >= 0 && *samples <= samples_max) return samples;
    }
  return std::nullopt;
}

}  // namespace

std::optional<wire::agent::Progress> ProgressMeter::hear(std::string_view lines, Time now) {
  for (const std::string_view line : words(lines, "\n")) {
    const auto samples = samples_in(line);
    if (!samples) continue;
    if (!since_) {
      since_ = now;
      continue;
    }
    ++report_.steps;
    report_.samples += *samples;
  }
  if (report_.steps == 0 || now - *since_ < interval_) return std::nullopt;
  report_.wall_ns = (now - *since_).count();
  since_ = now;
  const wire::agent::Progress report = report_;
  report_ = {.worker = report.worker};
  return report;
}

}  // namespace elasticrun::launcher::agent::workers
