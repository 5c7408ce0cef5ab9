// See save_flags.hpp.
#include "cli/run/save_flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string_view>

namespace elasticrun::cli::run {
namespace {

// The signals that batch systems send as a warning, and that mean nothing else to us.
constexpr int stop_signals[] = {SIGUSR1, SIGUSR2, SIGQUIT, SIGXCPU, SIGURG, SIGALRM, SIGPWR};

// "USR1", "SIGUSR1" or "10"; 0: none of the signals above.
int signal_of(std::string_view text) {
  if (text.starts_with("SIG")) text.remove_prefix(3);
  for (const int number : stop_signals)
    if (text == ::sigabbrev_np(number) || text == std::to_string(number)) return number;
  return 0;
}

}  // namespace

Result<job::JobSpec::Saving> read_save_flags(const Settings& settings, const std::string& cwd) {
  job::JobSpec::Saving saving;
  const Setting* const folder = find(settings, "save");
  if (folder) {
    if (folder->values.back().empty())
      return Error{fmt::format("{}: the name of the folder is empty", folder->place)};
    saving.folder =
        (std::filesystem::path(cwd) / folder->values.back()).lexically_normal().string();
    while (saving.folder.size() > 1 && saving.folder.back() == '/') saving.folder.pop_back();
  }
  struct Row {
    FlagName name;
    Duration job::JobSpec::Saving::*member;
  };
  const Row rows[] = {{"save-every", &job::JobSpec::Saving::every},
                      {"time-limit", &job::JobSpec::Saving::time_limit}};
  for (const auto& [name, member] : rows) {
    const Setting* const setting = find(settings, name);
    if (!setting) continue;
    const auto time = time_above_zero(*setting);
    if (!time) return time.error();
    if (!folder)
      return Error{
          fmt::format("{}: there is no folder to save in; add --save DIR", setting->place)};
    saving.*member = *time;
  }
  if (const Setting* const signal = find(settings, "stop-signal")) {
    saving.stop_signal = signal_of(signal->values.back());
    if (saving.stop_signal == 0)
      return Error{fmt::format("{}: '{}' is none of USR1, USR2, QUIT, XCPU, URG, ALRM and PWR",
                               signal->place, signal->values.back())};
  }
  return saving;
}

void fit_to_slurm(job::JobSpec::Saving& saving, const launcher::hosts::Variables& environment) {
  const auto job = environment.find("SLURM_JOB_ID");
  if (job == environment.end() || job->second.empty() || saving.folder.empty()) return;
  saving.slurm_job = job->second;
  // By its plain number a task of an array may mean the whole array.
  const auto array = environment.find("SLURM_ARRAY_JOB_ID");
  const auto task = environment.find("SLURM_ARRAY_TASK_ID");
  if (array != environment.end() && task != environment.end())
    saving.slurm_job = fmt::format("{}_{}", array->second, task->second);
  if (saving.stop_signal == 0) saving.stop_signal = SIGUSR1;
}

void limit_to_slurm(job::JobSpec::Saving& saving, Duration left) {
  if (saving.time_limit > Duration::zero() && saving.time_limit <= left) return;
  saving.time_limit = std::max<Duration>(left, std::chrono::seconds(1));  // 0 would be no limit
  saving.limited_by = fmt::format("the time limit of job {}", saving.slurm_job);
}

}  // namespace elasticrun::cli::run
