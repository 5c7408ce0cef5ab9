// See run.hpp.
#include "cli/run/run.hpp"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <variant>

#include "base/exit_code.hpp"
#include "base/text.hpp"
#include "cli/run/dry_run.hpp"
#include "cli/run/options.hpp"
#include "cli/run/terminal.hpp"
#include "job/driver/controller.hpp"
#include "launcher/machine/descriptors.hpp"
#include "launcher/srun/batch_job.hpp"
#include "net/sockets.hpp"

namespace elasticrun::cli::run {
namespace {

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

// Slurm's time limit is that of a job that saves its state, where the user gave none.
void take_time_limit(job::JobSpec::Saving& saving, job::report::Sink& sink) {
  const auto job = launcher::srun::find_batch_job(saving.slurm_job);
  if (!job)
    return sink.log(job::report::LogLevel::error,
                    fmt::format("the time limit of job {} is not known: {}", saving.slurm_job,
                                job.error().text));
  if (job->restarts > 0)
    sink.log(job::report::LogLevel::info, fmt::format("job {} of Slurm, started again: {}", job->id,
                                                      counted(job->restarts, "restart")));
  if (!job->ends_at || saving.time_limit > Duration::zero()) return;
  const Duration left = *job->ends_at - std::chrono::system_clock::now();
  if (left > Duration::zero()) saving.time_limit = left;
}

// The state is saved because the time is up: says whether Slurm will start the job again.
bool is_to_be_requeued(const std::string& id, job::report::Sink& sink) {
  if (id.empty()) return false;
  const auto job = launcher::srun::find_batch_job(id);
  const std::string why_not = job ? launcher::srun::why_not_again(*job) : job.error().text;
  if (why_not.empty())
    sink.log(job::report::LogLevel::info,
             fmt::format("job {} is requeued: it goes on when Slurm starts it again", id));
  else
    sink.log(job::report::LogLevel::error, "not requeued: " + why_not);
  return why_not.empty();
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
    (*terminal)->log(job::report::LogLevel::error,
                     launcher::machine::too_few_descriptors(
                         fmt::format("{} hosts", spec.hosts.size()), needed, limit));
  if (!spec.saving.slurm_job.empty()) take_time_limit(spec.saving, **terminal);
  const job::Finish end = job::driver::Controller::run(spec, machine, **terminal);
  using job::report::LogLevel;
  if (!end.last_words.empty())
    (*terminal)->log(end.exit_code == exit_code::ok ? LogLevel::info : LogLevel::error,
                     end.last_words);
  const bool again = end.time_was_up && is_to_be_requeued(spec.saving.slurm_job, **terminal);
  (*terminal)->finish(end.exit_code, !was_interrupted(end.exit_code));
  if (again)
    if (const auto done = launcher::srun::requeue(spec.saving.slurm_job); !done)
      std::fprintf(stderr, "elasticrun: %s; submit the job again to go on\n",
                   done.error().text.c_str());
  return end.exit_code;
}

}  // namespace

int run(int argc, const char* const* argv, const char* const* env) {
  net::take_standard_descriptors();
  take_hang_up_for_term();
  try {
    return parse_and_run(argc, argv, env);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "elasticrun: internal error: %s\n", e.what());
    return exit_code::internal;
  }
}

}  // namespace elasticrun::cli::run
