// See run.hpp.
#include "cli/run/run.hpp"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <optional>
#include <utility>
#include <variant>

#include "base/exit_code.hpp"
#include "base/text.hpp"
#include "cli/run/dry_run.hpp"
#include "cli/run/options.hpp"
#include "cli/run/save_flags.hpp"
#include "cli/run/terminal.hpp"
#include "job/driver/controller.hpp"
#include "launcher/machine/descriptors.hpp"
#include "launcher/srun/batch_job.hpp"
#include "net/sockets.hpp"

namespace elasticrun::cli::run {
namespace {

using job::report::LogLevel;

// Whether the user has interrupted the job. Then it should end even if its last output is not read.
bool was_interrupted(int code) {
  return code == exit_code::signal_base + SIGINT || code == exit_code::signal_base + SIGTERM;
}

// Treats SIGHUP like SIGTERM from the start, not only while the job runs (signals.hpp): a run of
// --host-discovery before that may take a while.
void take_hang_up_for_term() {
  struct sigaction hang_up {};
  ::sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler == SIG_DFL) ::signal(SIGHUP, [](int) { ::raise(SIGTERM); });
}

// What Slurm says of a job that saves its state; its time limit is the job's, unless the user gave
// a nearer one.
std::optional<launcher::srun::BatchJob> take_time_limit(job::JobSpec::Saving& saving,
                                                        job::report::Sink& sink) {
  if (saving.slurm_job.empty()) return std::nullopt;
  const auto job = launcher::srun::find_batch_job(saving.slurm_job);
  if (!job) {
    sink.log(LogLevel::error, fmt::format("the time limit of job {} is not known: {}",
                                          saving.slurm_job, job.error().text));
    return std::nullopt;
  }
  if (job->restarts > 0)
    sink.log(LogLevel::info, fmt::format("job {} of Slurm, started again: {}", saving.slurm_job,
                                         counted(job->restarts, "restart")));
  if (job->ends_at) limit_to_slurm(saving, *job->ends_at - std::chrono::system_clock::now());
  return *job;
}

// The state is saved because the time is up: has Slurm start the job again, if it may.
void go_on_later(const std::string& id, std::optional<launcher::srun::BatchJob> job,
                 bool if_preempted, job::report::Sink& sink) {
  // Slurm sends these when the time is over, and when it requeues the job.
  for (const int number : {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) ::signal(number, SIG_IGN);
  if (!job || if_preempted) {
    auto found = launcher::srun::find_batch_job(id);
    if (!found) return sink.log(LogLevel::error, "not requeued: " + found.error().text);
    job = std::move(*found);
  }
  if (if_preempted && !job->preempted) return;  // the user has cancelled it
  if (const std::string why = launcher::srun::why_not_again(*job); !why.empty())
    return sink.log(LogLevel::error, "not requeued: " + why);
  if (const auto done = launcher::srun::requeue(id); !done)
    return sink.log(LogLevel::error,
                    fmt::format("not requeued: {}; submit the job again", done.error().text));
  sink.log(LogLevel::info,
           fmt::format("job {} is requeued: it resumes when Slurm starts it again", id));
}

int parse_and_run(int argc, const char* const* argv, const char* const* env) {
  const launcher::machine::Machine machine = launcher::machine::this_machine();
  auto parsed = parse(argc, argv, env, machine);
  if (const auto* print = std::get_if<PrintAndExit>(&parsed)) {
    std::fputs(print->text.c_str(), print->code == exit_code::ok ? stdout : stderr);
    return print->code;
  }
  auto& spec = std::get<job::JobSpec>(parsed);
  if (spec.dry_run) {
    std::fputs(describe(spec).c_str(), stdout);
    return exit_code::ok;
  }
  auto terminal = Terminal::open(spec);
  if (!terminal) {
    std::fprintf(stderr, "elasticrun: %s\n", terminal.error().text.c_str());
    return exit_code::usage;
  }
  const std::size_t limit = launcher::machine::raise_descriptor_limit();
  const std::size_t needed = launcher::machine::descriptors_for_hosts(spec.hosts.size()) +
                             (spec.log_dir.empty() ? 0 : open_files_max);
  if (limit < needed)
    (*terminal)->log(LogLevel::error,
                     launcher::machine::too_few_descriptors(
                         fmt::format("{} hosts", spec.hosts.size()), needed, limit));
  auto slurm_job = take_time_limit(spec.saving, **terminal);
  const job::Finish end = job::driver::Controller::run(spec, machine, **terminal);
  if (!end.last_words.empty())
    (*terminal)->log(end.exit_code == exit_code::ok ? LogLevel::info : LogLevel::error,
                     end.last_words);
  if (end.time_was_up && !spec.saving.slurm_job.empty())
    go_on_later(spec.saving.slurm_job, std::move(slurm_job), end.if_preempted, **terminal);
  (*terminal)->finish(end.exit_code, !was_interrupted(end.exit_code));
  return end.exit_code;
}

}  // namespace

int run(int argc, const char* const* argv, const char* const* env) {
  net::take_standard_descriptors();
  ::signal(SIGCHLD, SIG_DFL);  // if a parent ignored it, no end of a child would be reported
  take_hang_up_for_term();
  try {
    return parse_and_run(argc, argv, env);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "elasticrun: internal error: %s\n", e.what());
    return exit_code::internal;
  }
}

}  // namespace elasticrun::cli::run
