// See plan_run.hpp.
#include "cli/ctl/plan_run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/line.hpp"
#include "job/report/event_log.hpp"

namespace elasticrun::cli::ctl {

namespace {

using job::report::Run;

// An id of ours has 12 letters; a file may hold anything.
std::string shown_id(const std::string& job) { return as_line(job, 40); }

// The ids of the newest runs, as many as fit on a line.
std::string ids(const std::vector<Run>& runs) {
  constexpr std::size_t most = 6;
  std::string text = runs.size() > most ? "..." : "";
  for (std::size_t i = runs.size() - std::min(most, runs.size()); i < runs.size(); ++i)
    text += fmt::format("{}{}", text.empty() ? "" : ", ",
                        runs[i].job.empty() ? "?" : shown_id(runs[i].job));
  return text;
}

Result<ChosenRun> named(const std::vector<Run>& runs, const std::string& job,
                        const std::string& file) {
  const auto run = std::ranges::find(runs, job, &Run::job);
  if (run == runs.end())
    return Error{fmt::format("--job {}: {} has no such job, but {}", job, file, ids(runs))};
  auto history = simulate::what_if::read_history(run->events);
  if (!history) return Error{fmt::format("{}: job {}: {}", file, job, history.error().text)};
  return ChosenRun{std::move(*history), shown_id(job), {}};
}

}  // namespace

Result<ChosenRun> choose_run(const std::vector<job::report::Event>& events, const std::string& job,
                             const std::string& file) {
  const std::vector<Run> runs = job::report::runs_of(events);
  if (!job.empty()) return named(runs, job, file);
  const auto last = [&](bool finished) -> std::optional<ChosenRun> {
    for (auto run = runs.rbegin(); run != runs.rend(); ++run)
      if (auto history = simulate::what_if::read_history(run->events); history)
        if (history->finished || !finished)
          return ChosenRun{std::move(*history), shown_id(run->job), {}};
    return {};
  };
  auto chosen = last(true);
  const bool finished = chosen.has_value();
  if (!finished) chosen = last(false);
  if (!chosen)
    return Error{fmt::format("{}: {}", file,
                             simulate::what_if::read_history(runs.back().events).error().text)};
  if (runs.size() > 1)
    chosen->others =
        fmt::format("{} has {} runs: {}; this is the last that {}; --job takes another", file,
                    runs.size(), ids(runs), finished ? "came to its end" : "measured anything");
  return std::move(*chosen);
}

}  // namespace elasticrun::cli::ctl
