// See convert.hpp. One reader per kind of value. Only the first mistake is kept, so that the user
// gets one line, about the first thing wrong in the order below.
#include "cli/run/convert.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "autoscaler/autoscaler.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "cli/flags.hpp"
#include "cli/run/host_flags.hpp"
#include "cli/run/save_flags.hpp"
#include "cli/run/stream_flags.hpp"
#include "launcher/executors/wrap.hpp"
#include "launcher/hosts/host_line.hpp"

namespace elasticrun::cli::run {
namespace {

constexpr std::int64_t workers_max = 65536;
constexpr std::int64_t batch_max = std::int64_t{1} << 40;

// Each of these flags selects the policy of its name.
constexpr FlagName aims[] = {"utility", "budget", "deadline"};

struct Span {
  int min = 0;
  int max = 0;
};

class Converter {
 public:
  Converter(const Settings& settings, const launcher::machine::Machine& machine)
      : settings_(settings), machine_(machine) {}

  Result<job::JobSpec> run(const launcher::hosts::Variables& environment) {
    spec_.cwd = machine_.cwd;
    if (auto hosts = read_host_flags(settings_, environment, spec_); !hosts) return hosts.error();
    read_limits();
    read_batch();
    read_aims();
    read_deadlines();
    read_rest();
    settle_hosts();
    settle_sizes();
    settle_policy();
    if (mistake_) return *mistake_;
    return std::move(spec_);
  }

 private:
  // ---- one value
  const Setting* find(FlagName name) const { return run::find(settings_, name); }
  std::string_view text(FlagName name) const {
    const Setting* const setting = find(name);
    return setting ? std::string_view(setting->values.back()) : std::string_view();
  }
  std::string place(FlagName name) const {
    if (const Setting* const setting = find(name)) return setting->place;
    return spelled(name.flag());
  }
  void fail(FlagName name, std::string_view what) {
    note(Error{fmt::format("{}: {}", place(name), what)});
  }

  std::int64_t number(FlagName name, std::int64_t least, std::int64_t most, std::int64_t standard) {
    if (!find(name)) return standard;
    const auto value = whole_number(text(name));
    if (value && *value >= least && *value <= most) return *value;
    fail(name, fmt::format("'{}' is not a whole number from {} to {}", text(name), least, most));
    return standard;
  }
  int workers(FlagName name, int standard) {
    return static_cast<int>(number(name, 1, workers_max, standard));
  }

  bool toggle(FlagName name) {
    if (!find(name)) return false;
    for (const char* yes : {"true", "yes", "on", "1"})
      if (text(name) == yes) return true;
    for (const char* no : {"false", "no", "off", "0"})
      if (text(name) == no) return false;
    fail(name, fmt::format("'{}' is neither true nor false", text(name)));
    return false;
  }

  // One of these words, the first one where the flag is not set.
  std::string_view choice(FlagName name, std::initializer_list<std::string_view> known) {
    if (!find(name)) return *known.begin();
    if (std::ranges::count(known, text(name)) == 0)
      fail(name, fmt::format("'{}' is not known; use {}", text(name), fmt::join(known, " or ")));
    return text(name);
  }

  // Reads "4" or "1:4".
  Span span(FlagName name) {
    const std::string_view value = text(name);
    const auto colon = value.find(':');
    const auto low = whole_number(value.substr(0, colon));
    const auto high = colon == value.npos ? low : whole_number(value.substr(colon + 1));
    if (!low || !high || *low < 1 || *high > workers_max) {
      fail(name, fmt::format("'{}' is neither a number nor MIN:MAX, as in 1:8", value));
    } else if (*low > *high) {
      fail(name, fmt::format("'{}' begins above its end; write {}:{}", value, *high, *low));
    } else {
      return {static_cast<int>(*low), static_cast<int>(*high)};
    }
    return {1, 1};
  }

  // ---- groups of values
  void note(const Error& error) {
    if (!mistake_) mistake_ = error;
  }
  template <class T>
  void take(Result<T> read, T& into) {
    if (!read) return note(read.error());
    into = std::move(*read);
  }

  void read_limits() {
    spec_.default_slots = std::max(machine_.gpus, 1);
    spec_.slots_are_gpus = !find("slots") || text("slots") == "auto" || text("slots") == "gpu";
    if (!spec_.slots_are_gpus)
      spec_.default_slots = static_cast<int>(
          number("slots", 1, launcher::hosts::slots_per_host_max, spec_.default_slots));
    launcher::hosts::Limits& limits = spec_.limits;
    const bool bounded = find("min-np") || find("max-np");
    if (find("np")) {
      const Span np = span("np");
      limits.min = np.min;
      limits.max = np.max;
      // As in horovodrun, -np 4 --max-np 8 means to begin with 4 workers.
      if (bounded && np.min == np.max) {
        spec_.start = np.min;
        if (!find("max-np")) limits.max = 0;
      }
    }
    limits.min = workers("min-np", limits.min);
    limits.max = workers("max-np", limits.max);
    if (find("nnodes")) {
      const Span nodes = span("nnodes");
      limits.min_hosts = nodes.min;
      limits.max_hosts = nodes.max;
    }
    spec_.start = workers("start", spec_.start);
    if (limits.max > 0 && limits.min > limits.max)
      fail(find("min-np") ? FlagName("min-np") : "max-np",
           fmt::format("the fewest workers ({}) are more than the most ({})", limits.min,
                       limits.max));
  }

  void read_batch() {
    autoscaler::BatchRule& rule = spec_.batch;
    rule.max_batch = number("max-batch", 1, batch_max, 0);
    rule.batch = number("batch", 1, batch_max, 0);
    rule.base_batch = number("base-batch", 1, batch_max, 0);
    if (find("lr-rule")) {
      const auto parsed = autoscaler::parse_lr_rule(text("lr-rule"));
      if (parsed)
        rule.lr_rule = *parsed;
      else
        fail("lr-rule", parsed.error().text);
    }
    if (rule.max_batch > 0 && rule.batch > rule.max_batch)
      fail("batch",
           fmt::format("{} per worker is more than --max-batch {}", rule.batch, rule.max_batch));
  }

  double money(FlagName name, double standard) {
    if (!find(name)) return standard;
    const auto value = amount(text(name));
    if (value && *value > 0) return *value;
    fail(name, fmt::format("'{}' is no amount of money above 0, as in 2.5", text(name)));
    return standard;
  }

  void read_aims() {
    spec_.price = money("price", spec_.price);
    spec_.aims.budget = money("budget", 0);
    if (find("deadline")) {
      const auto limit = parse_duration(text("deadline"));
      if (!limit)
        fail("deadline", limit.error().text);
      else if (*limit == Duration::zero())
        fail("deadline", "no job ends in no time; write a time as in 2h");
      else
        spec_.aims.deadline = *limit;
    }
    if (!find("utility")) return;
    auto points = autoscaler::parse_utility(text("utility"));
    if (points)
      spec_.aims.utility = std::move(*points);
    else
      fail("utility", points.error().text);
  }

  void read_deadlines() {
    job::Deadlines& deadlines = spec_.deadlines;
    for (const job::DeadlineRow& row : job::deadline_table) {
      const FlagName name(*find_flag(row.name));
      if (!find(name)) continue;
      const auto parsed = parse_duration(text(name));
      if (!parsed) return fail(name, parsed.error().text);
      deadlines.*row.member = *parsed;
    }
    if (!find("orphan-grace")) deadlines.orphan_grace = deadlines.grace;
    deadlines.orphan_grace = std::min(deadlines.orphan_grace, deadlines.lease);
    if (const auto valid = job::check(deadlines); !valid) note(valid.error());
  }

  void read_stragglers() {
    const std::string_view what = choice("stragglers", {"replace", "report", "off"});
    spec_.stragglers = what == "off"      ? job::StragglerAction::off
                       : what == "report" ? job::StragglerAction::report
                                          : job::StragglerAction::replace;
  }

  void read_rest() {
    read_stragglers();
    spec_.shares_by_speed = choice("shares", {"speed", "equal"}) == "speed";
    spec_.spares = static_cast<int>(number("spares", 0, workers_max, 0));
    if (find("max-restarts"))
      spec_.max_restarts = static_cast<int>(number("max-restarts", 0, 1'000'000, 0));
    spec_.environment.none = toggle("no-env");
    spec_.ship = toggle("ship");
    if (const Setting* const extra = find("x")) spec_.environment.extra = extra->values;
    read_port();
    spec_.ssh.user = text("user");
    if (find("user"))
      if (const auto valid = launcher::hosts::check_user(spec_.ssh.user); !valid)
        fail("user", valid.error().text);
    spec_.ssh.identity = text("identity");
    spec_.ssh.config_file = text("ssh-config");
    spec_.ssh.known_hosts = text("known-hosts");
    spec_.ssh.port = static_cast<std::uint16_t>(number("ssh-port", 1, 65535, 0));
    spec_.bind = text("bind");
    spec_.network = text("network");
    spec_.backend = choice("backend", {"auto", "gloo", "nccl"});
    read_verify_state();
    spec_.notice = text("notice");
    spec_.wrap = text("wrap");
    if (find("wrap"))
      if (const auto valid = launcher::executors::check_wrap(spec_.wrap); !valid)
        fail("wrap", valid.error().text);
    spec_.log_dir = text("log-dir");
    take(read_stream_flags(settings_), spec_.streams);
    take(read_save_flags(settings_, machine_.cwd), spec_.saving);
    spec_.events_file = text("events");
    spec_.label = choice("label", {"host:rank", "none"}) != "none";
    spec_.one_gpu_visible = toggle("one-gpu-visible");
    spec_.quiet = toggle("quiet");
    spec_.explain = toggle("explain");
    spec_.dry_run = toggle("dry-run");
  }

  void read_verify_state() {
    if (!find("verify-state")) return;
    constexpr std::int64_t most = 1'000'000'000;
    const std::string_view value = text("verify-state");
    const auto steps = whole_number(value);
    if (value == "off")
      spec_.verify_state = 0;
    else if (steps && *steps >= 1 && *steps <= most)
      spec_.verify_state = *steps;
    else
      fail("verify-state",
           fmt::format("'{}' is neither off nor a whole number from 1 to {}", value, most));
  }

  void read_port() {
    if (!find("port")) return;
    const std::string_view value = text("port");
    const auto dash = value.find('-');
    const auto first = whole_number(value.substr(0, dash));
    const auto last = dash == value.npos ? first : whole_number(value.substr(dash + 1));
    const bool any = first == 0 && last == 0;
    if (!first || !last || (!any && *first < 1) || *last > 65535 || *first > *last)
      return fail("port", fmt::format("'{}' is no port; write 29400 or 29400-29500", value));
    spec_.port_first = static_cast<std::uint16_t>(*first);
    spec_.port_last = static_cast<std::uint16_t>(*last);
  }

  // ---- what depends on several groups
  // Without hosts, this machine takes as many workers as the user asks for, so that a laptop needs
  // no host file.
  void settle_hosts() {
    if (mistake_) return;
    if (const auto done = find_hosts(settings_, spec_); !done) return note(done.error());
    if (spec_.hosts.empty()) {
      launcher::hosts::Host here;
      here.name = "localhost";
      here.slots = spec_.default_slots;
      if (!find("slots"))
        here.slots = std::max({here.slots, spec_.limits.min, spec_.limits.max, spec_.start});
      if (here.slots > launcher::hosts::slots_per_host_max)
        fail("np", fmt::format("{} workers are more than the {} that one host can take; give hosts",
                               here.slots, launcher::hosts::slots_per_host_max));
      spec_.hosts.push_back(std::move(here));
    }
    const auto used = std::ranges::count(spec_.hosts, false, &launcher::hosts::Host::spare);
    if (used == 0)
      fail(!spec_.host_discovery.empty() ? FlagName("host-discovery")
           : spec_.hosts_file.empty()    ? FlagName("host-list")
                                         : "hosts",
           "every host is a spare");
    spec_.unit = used == 1 ? launcher::hosts::Unit::slot : launcher::hosts::Unit::host;
    if (!find("unit")) return;
    const bool by_slot = choice("unit", {"host", "slot"}) == "slot";
    spec_.unit = by_slot ? launcher::hosts::Unit::slot : launcher::hosts::Unit::host;
  }

  // Hosts whose slots are their GPUs, whose number only their agents will report.
  bool some_slots_are_unknown() const {
    return spec_.slots_are_gpus && std::ranges::any_of(spec_.hosts, [&](const auto& host) {
             return host.slots == 0 && !launcher::hosts::is_this_machine(host, machine_.own);
           });
  }

  void settle_sizes() {
    // Discovered hosts may appear later; the job waits until there are enough. Below, some other
    // hosts have to be up before their slots are known.
    if (mistake_ || !spec_.host_discovery.empty()) return;
    launcher::hosts::HostBook book;
    const auto slots =
        launcher::hosts::make_plan(spec_.hosts, spec_.default_slots, book).slots_by_host;
    const int total = std::accumulate(slots.begin(), slots.end(), 0);
    const launcher::hosts::Limits& limits = spec_.limits;
    const std::string there = fmt::format("the hosts have {}", counted(total, "slot"));
    if (limits.min_hosts > static_cast<int>(slots.size()))
      return fail("nnodes", fmt::format("at least {} needed, {} given",
                                        counted(limits.min_hosts, "host"), slots.size()));
    if (some_slots_are_unknown()) return;
    if (limits.min > total)
      return fail(
          find("min-np") ? FlagName("min-np") : "np",
          fmt::format("{} workers are needed, but {}; add hosts, or --slots", limits.min, there));
    const int most = limits.max > 0 ? std::min(limits.max, total) : total;
    if (spec_.start > 0 && (spec_.start < limits.min || spec_.start > most))
      return fail(find("start") ? FlagName("start") : "np",
                  fmt::format("cannot begin with {}; from {} to {} are possible ({})",
                              counted(spec_.start, "worker"), limits.min, most, there));
    if (launcher::hosts::reachable_sizes(slots, spec_.unit, limits, spec_.start).empty())
      fail("nnodes", fmt::format("no size is possible within the limits ({})", there));
  }

  // The aim that the user has named, or empty: it selects the policy of that name.
  std::string_view aim() {
    std::string_view named;
    for (const FlagName name : aims) {
      if (!find(name)) continue;
      const std::string_view policy = find("policy") ? text("policy") : named;
      if (!policy.empty() && policy != name)
        fail(name, fmt::format("is for the policy {}, and the policy is {}; leave one out",
                               std::string_view(name), policy));
      named = name;
    }
    return named;
  }

  // A range of sizes or a largest batch means that the size may change; one number, that it stays.
  void settle_policy() {
    const launcher::hosts::Limits& limits = spec_.limits;
    const bool range = (find("np") || find("min-np") || find("max-np")) && limits.min != limits.max;
    const bool host_range = limits.min_hosts != limits.max_hosts;
    spec_.resizable = range || host_range;
    spec_.policy = spec_.resizable || spec_.batch.max_batch > 0 ? "fit" : "fixed";
    if (const std::string_view named = aim(); !named.empty()) spec_.policy = named;
    if (!find("policy")) return;
    if (const auto known = autoscaler::Autoscaler::check_policy(text("policy")); !known)
      return fail("policy", known.error().text);
    spec_.policy = text("policy");
    for (const FlagName needed : aims)
      if (spec_.policy == std::string_view(needed) && !find(needed))
        fail("policy", fmt::format("{0} needs --{0}", std::string_view(needed)));
  }

  const Settings& settings_;
  const launcher::machine::Machine& machine_;
  job::JobSpec spec_;
  std::optional<Error> mistake_;  // the first one
};

}  // namespace

Result<job::JobSpec> to_spec(const Settings& settings,
                             const launcher::hosts::Variables& environment,
                             const launcher::machine::Machine& machine) {
  return Converter(settings, machine).run(environment);
}

}  // namespace elasticrun::cli::run
