// See settings.hpp.
#include "cli/run/settings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.hpp"
#include "cli/suggest.hpp"

namespace elasticrun::cli::run {
namespace {

// Variables that are set for workers and begin like those of flags. An elasticrun inside a worker
// finds them set and must not take them for mistakes. (ELASTICRUN_MAX_BATCH is set for workers
// too, but is missing here because it is meant to apply to such an elasticrun.)
constexpr std::string_view told_to_workers[] = {"ELASTICRUN_JOB_ID",     "ELASTICRUN_HOST",
                                                "ELASTICRUN_SLOT",       "ELASTICRUN_SOCKET",
                                                "ELASTICRUN_GENERATION", "ELASTICRUN_WORKER"};

// Flags of other launchers, with the end of the error; the edit distance cannot find ours.
struct Foreign {
  std::string_view name;
  std::string_view answer;
};
constexpr std::string_view own_rendezvous = "leave it out: elasticrun has its own rendezvous";
constexpr Foreign foreign[] = {
    {"c", "did you mean --np?"},
    {"num-proc", "did you mean --np?"},
    {"machinefile", "did you mean --hosts?"},
    {"f", "did you mean --hosts?"},
    {"host", "did you mean -H?"},
    {"nproc", "did you mean --nproc-per-node, or --np for all hosts together?"},
    {"nprocs", "did you mean --nproc-per-node, or --np for all hosts together?"},
    {"ppn", "did you mean --slots?"},
    {"num-gpus", "did you mean --slots?"},
    {"num-nodes", "did you mean --nnodes?"},
    {"genv", "did you mean -x?"},
    {"timeout", "did you mean --hung?"},
    {"standalone", "leave it out: without hosts the job runs on this machine alone"},
    {"rdzv-backend", own_rendezvous},
    {"rdzv-endpoint", own_rendezvous},
    {"rdzv-id", own_rendezvous},
    {"rdzv-conf", own_rendezvous},
    {"master-addr", own_rendezvous},
    {"master-port", own_rendezvous},
    {"node-rank", own_rendezvous},
    {"ntasks", "did you mean --np?"},
    {"min-num-proc", "did you mean --min-np?"},
    {"max-num-proc", "did you mean --max-np?"},
    {"elastic-timeout", "did you mean --minimum-timeout?"},
    {"reset-limit", "did you mean --max-restarts?"},
    {"tag-output", "did you mean --label?"},
    {"export", "did you mean -x?"},
    {"bind-to", "did you mean --wrap 'numactl ...'?"},
    {"start-method", "leave it out: the program itself is started"},
    {"oversubscribe", "leave it out: a host has as many slots as --slots says"},
    {"output", "did you mean --log-dir?"},
    {"output-filename", "did you mean --log-dir?"},
};

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const auto end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string in_quotes(std::string_view text) {
  const char quote = text.find('"') == text.npos ? '"' : '\'';
  return fmt::format("{0}{1}{0}", quote, text);
}

std::string shown_value(const Flag& flag, const std::vector<std::string>& values) {
  if (flag.kind == Kind::toggle) return values.back();
  if (flag.kind == Kind::value) return in_quotes(values.back());
  std::string text;
  for (const auto& value : values) text += (text.empty() ? "" : ", ") + in_quotes(value);
  return "[" + text + "]";
}

std::string shown_source(const Setting& setting) {
  if (setting.source == Source::command_line) return "command line";
  if (setting.source == Source::environment) return "environment " + setting.place;
  return "file " + setting.place.substr(0, setting.place.rfind(": "));
}

}  // namespace

const Setting* find(const Settings& settings, FlagName name) {
  const auto found = settings.find(std::string_view(name));
  return found == settings.end() ? nullptr : &found->second;
}

std::string suggestion(std::string_view name) {
  std::string plain(name);
  std::ranges::replace(plain, '_', '-');
  for (const Foreign& one : foreign)
    if (one.name == plain) return fmt::format("; {}", one.answer);
  std::vector<std::string> names;
  for (const Flag& flag : flags) {
    for (const std::string& one : spellings(flag))
      if (one.starts_with("--")) names.push_back(one.substr(2));
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  const auto best = closest(plain, known);
  return best.empty() ? "" : fmt::format("; did you mean --{}?", best);
}

Result<Settings> settings_from_environment(const std::vector<std::string>& environment) {
  Settings settings;
  std::vector<std::string> names;
  for (const Flag& flag : flags)
    if (flag.kind != Kind::command) names.push_back(environment_name(flag));
  const std::vector<std::string_view> known(names.begin(), names.end());
  for (const std::string& entry : environment) {
    const auto equal = entry.find('=');
    const std::string_view name = std::string_view(entry).substr(0, equal);
    if (!name.starts_with("ELASTICRUN_") || equal == entry.npos || equal + 1 == entry.size())
      continue;
    const auto found = std::ranges::find_if(flags, [&](const Flag& flag) {
      return flag.kind != Kind::command && environment_name(flag) == name;
    });
    if (found != flags.end()) {
      const std::string value = entry.substr(equal + 1);
      auto values = found->kind == Kind::list ? split(value, ',') : std::vector{value};
      settings[std::string(found->name)] = {std::move(values), Source::environment,
                                            std::string(name)};
      continue;
    }
    // Variables of other programs may begin the same way; only one that is nearly a flag's is a
    // mistake.
    if (std::ranges::find(told_to_workers, name) != std::end(told_to_workers)) continue;
    for (const auto& candidate : known)
      if (edit_distance(name, candidate) <= 2)
        return Error{fmt::format("{}: unknown variable; did you mean {}?", name, candidate)};
  }
  return settings;
}

std::string show(const Settings& settings) {
  std::string text;
  for (const Flag& flag : flags) {
    if (flag.kind == Kind::command || flag.name == FlagName("config")) continue;
    const auto found = settings.find(flag.name);
    if (found != settings.end()) {
      const Setting& setting = found->second;
      text += fmt::format("{} = {}  # {}\n", flag.name, shown_value(flag, setting.values),
                          shown_source(setting));
    } else if (!flag.standard.empty()) {
      text += fmt::format("# {} = {}  # default\n", flag.name, in_quotes(flag.standard));
    } else {
      text += fmt::format("# {} is not set\n", flag.name);
    }
  }
  return text;
}

Result<std::string> read_text(const std::string& path, std::string_view place) {
  auto text = read_file(path, 16u << 20);
  if (!text) return Error{fmt::format("{}: {}", place, text.error().text)};
  return text;
}

Result<Duration> time_above_zero(const Setting& setting) {
  auto time = parse_duration(setting.values.back());
  if (!time) return Error{fmt::format("{}: {}", setting.place, time.error().text)};
  if (*time == Duration::zero())
    return Error{fmt::format("{}: 0 is too short; write a time as in 30m", setting.place)};
  return time;
}

}  // namespace elasticrun::cli::run
