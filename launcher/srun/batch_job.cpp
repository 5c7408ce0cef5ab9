// See batch_job.hpp.
#include "launcher/srun/batch_job.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/numbers.hpp"
#include "launcher/executors/hook_process.hpp"
#include "launcher/srun/step.hpp"

namespace elasticrun::launcher::srun {
namespace {

constexpr Duration patience = std::chrono::seconds(10);  // a controller of Slurm may be down

// The value of NAME=VALUE among words; values with blanks are cut short.
std::optional<std::string_view> value_of(std::string_view line, std::string_view name) {
  for (std::size_t at = 0; (at = line.find(name, at)) != line.npos; ++at) {
    const std::size_t value = at + name.size();
    if ((at > 0 && line[at - 1] != ' ') || value >= line.size() || line[value] != '=') continue;
    const std::size_t end = std::min(line.find_first_of(" \n", value), line.size());
    return line.substr(value + 1, end - value - 1);
  }
  return std::nullopt;
}

// Nothing but digits, and '_' for a task of an array: what goes into a command line for a shell
// came from the environment.
Result<std::string> ask(std::string_view what, const std::string& id) {
  if (id.empty() ||
      !std::ranges::all_of(id, [](char c) { return c == '_' || (c >= '0' && c <= '9'); }))
    return Error{fmt::format("SLURM_JOB_ID '{}' is no number", id)};
  const std::string command = fmt::format("{} {}", what, id);
  executors::HookAnswer answer = executors::run_hook({command, patience});
  if (answer.output) return std::move(answer.output);
  return Error{fmt::format("{}: {}", command, answer.output.error().text)};
}

}  // namespace

Result<BatchJob> parse_batch_job(std::string_view line) {
  line = line.substr(0, line.find('\n'));  // the others are components, or tasks of the array
  const auto id = value_of(line, "JobId");
  const auto script = value_of(line, "BatchFlag");
  const auto again = value_of(line, "Requeue");
  if (!id || !script || !again)
    return Error{"scontrol show job: there is no JobId, BatchFlag or Requeue in what it says"};
  BatchJob job;
  job.id = *id;
  job.script = *script == "1";
  job.may_be_requeued = *again == "1";
  const auto preempted = value_of(line, "PreemptTime");
  job.preempted = preempted && *preempted != "None";
  job.restarts =
      static_cast<int>(whole_number(value_of(line, "Restarts").value_or("")).value_or(0));
  job.runs = value_of(line, "JobState") == "RUNNING";
  const auto host = value_of(line, "BatchHost");
  const auto nodes = node_names(value_of(line, "NodeList").value_or(""));
  job.lost_its_script = job.script && host && !nodes.empty() && !std::ranges::count(nodes, *host);
  const auto end = whole_number(value_of(line, "EndTime").value_or(""));
  if (end && value_of(line, "TimeLimit") != "UNLIMITED")
    job.ends_at = std::chrono::sys_seconds(std::chrono::seconds(*end));
  return job;
}

Result<BatchJob> find_batch_job(const std::string& id) {
  const auto line = ask("SLURM_TIME_FORMAT=%s scontrol --oneliner show job", id);
  if (!line) return line.error();
  return parse_batch_job(*line);
}

Result<void> requeue(const std::string& id) {
  auto done = ask("scontrol requeue", id);
  for (int again = 0; !done && again < 2; ++again) done = ask("scontrol requeue", id);
  if (!done) return done.error();
  return {};
}

Result<void> cancel(const std::string& id) {
  const auto done = ask("scancel", id);
  if (!done) return done.error();
  return {};
}

std::string why_not_again(const BatchJob& job) {
  if (!job.script)
    return fmt::format(
        "job {} of Slurm has no script to start again; give the command in another allocation",
        job.id);
  if (!job.may_be_requeued)
    return fmt::format(
        "job {} may not be requeued; submit it again, and with --requeue for the next time",
        job.id);
  return {};
}

}  // namespace elasticrun::launcher::srun
