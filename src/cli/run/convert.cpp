// See convert.hpp. One reader per kind of value. Only the first mistake is kept, so that the user
// gets one line, about the first thing wrong in the order below.
#include "cli/run/convert.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "autoscaler/autoscaler.hpp"
#include "base/numbers.hpp"
#include "cli/flags.hpp"
#include "cli/run/host_flags.hpp"
#include "launcher/executors/wrap.hpp"
#include "launcher/hosts/host_line.hpp"

namespace elasticrun::cli::run {
namespace {

constexpr std::int64_t workers_max = 65536;
constexpr std::int64_t batch_max = std::int64_t{1} << 40;

struct Span {
  int min = 0;
  int max = 0;
};

class Converter {
 public:
  Converter(const Settings& settings, const launcher::machine::Machine& machine)
      : settings_(settings), machine_(machine) {}

  Result<job::JobSpec> run() {
    spec_.cwd = machine_.cwd;
    read_hosts();
    read_limits();
    read_batch();
    read_aims();
    read_deadlines();
    read_rest();
    settle_hosts();
    settle_sizes();
    settle_policy();
    if (!mistake_.empty()) return Error{mistake_};
    return std::move(spec_);
  }

 private:
  // ---- one value
  const Setting* find(std::string_view name) const {
    const auto found = settings_.find(name);
    return found == settings_.end() ? nullptr : &found->second;
  }
  std::string_view text(std::string_view name) const {
    const Setting* const setting = find(name);
    return setting ? std::string_view(setting->values.back()) : std::string_view();
  }
  std::string place(std::string_view name) const {
    if (const Setting* const setting = find(name)) return setting->place;
    return spelled(*find_flag(name));
  }
  void fail(std::string_view name, std::string_view what) {
    if (mistake_.empty()) mistake_ = fmt::format("{}: {}", place(name), what);
  }

  std::int64_t number(std::string_view name, std::int64_t least, std::int64_t most,
                      std::int64_t standard) {
    if (!find(name)) return standard;
    const auto value = whole_number(text(name));
    if (value && *value >= least && *value <= most) return *value;
    fail(name, fmt::format("'{}' is not a whole number from {} to {}", text(name), least, most));
    return standard;
  }
  int workers(std::string_view name, int standard) {
    return static_cast<int>(number(name, 1, workers_max, standard));
  }

  bool toggle(std::string_view name) {
    if (!find(name)) return false;
    for (const char* yes : {"true", "yes", "on", "1"})
      if (text(name) == yes) return true;
    for (const char* no : {"false", "no", "off", "0"})
      if (text(name) == no) return false;
    fail(name, fmt::format("'{}' is neither true nor false", text(name)));
    return false;
  }

  // Reads "4" or "1:4".
  Span span(std::string_view name) {
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
  void read_hosts() {
    if (const auto done = read_host_flags(settings_, spec_); !done) note(done.error());
  }
  void note(const Error& error) {
    if (mistake_.empty()) mistake_ = error.text;
  }

  void read_limits() {
    spec_.default_slots = std::max(machine_.gpus, 1);
    spec_.slots_are_gpus = !find("slots") || text("slots") == "auto";
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
      fail(find("min-np") ? "min-np" : "max-np",
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

  double money(std::string_view name, double standard) {
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
      if (!find(row.name)) continue;
      const auto parsed = parse_duration(text(row.name));
      if (!parsed) return fail(row.name, parsed.error().text);
      deadlines.*row.member = *parsed;
    }
    if (!find("orphan-grace")) deadlines.orphan_grace = deadlines.grace;
    deadlines.orphan_grace = std::min(deadlines.orphan_grace, deadlines.lease);
    const std::string wrong = job::deadline_mistake(deadlines);
    if (!wrong.empty()) note(Error{wrong});
  }

  void read_stragglers() {
    const std::string_view what = find("stragglers") ? text("stragglers") : "replace";
    if (what == "off")
      spec_.stragglers = job::StragglerAction::off;
    else if (what == "report")
      spec_.stragglers = job::StragglerAction::report;
    else if (what != "replace")
      fail("stragglers", fmt::format("'{}' is not known; use off, report or replace", what));
  }

  void read_shares() {
    const std::string_view what = find("shares") ? text("shares") : "speed";
    spec_.shares_by_speed = what == "speed";
    if (what != "speed" && what != "equal")
      fail("shares", fmt::format("'{}' is not known; use speed or equal", what));
  }

  void read_rest() {
    read_stragglers();
    read_shares();
    spec_.spares = static_cast<int>(number("spares", 0, workers_max, 0));
    if (find("max-restarts"))
      spec_.max_restarts = static_cast<int>(number("max-restarts", 0, 1'000'000, 0));
    spec_.environment.none = toggle("no-env");
    spec_.ship = toggle("ship");
    if (const Setting* const extra = find("x")) spec_.environment.extra = extra->values;
    read_port();
    spec_.ssh.user = text("user");
    if (find("user"))
      if (const auto why = launcher::hosts::user_mistake(spec_.ssh.user)) fail("user", *why);
    spec_.ssh.identity = text("identity");
    spec_.ssh.config_file = text("ssh-config");
    spec_.ssh.known_hosts = text("known-hosts");
    spec_.ssh.port = static_cast<std::uint16_t>(number("ssh-port", 1, 65535, 0));
    spec_.bind = text("bind");
    spec_.join_key = text("join-key");
    spec_.network = text("network");
    read_backend();
    read_verify_state();
    spec_.wrap = text("wrap");
    if (find("wrap"))
      if (const auto why = launcher::executors::wrap_mistake(spec_.wrap); !why.empty())
        fail("wrap", why);
    spec_.log_dir = text("log-dir");
    spec_.events_file = text("events");
    if (const auto label = text("label"); find("label") && label != "host:rank" && label != "none")
      fail("label", fmt::format("'{}' is not known; use host:rank or none", label));
    spec_.label = text("label") != "none";
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

  void read_backend() {
    if (!find("backend")) return;
    spec_.backend = text("backend");
    if (spec_.backend != "auto" && spec_.backend != "gloo" && spec_.backend != "nccl")
      fail("backend", fmt::format("'{}' is not known; use auto, gloo or nccl", spec_.backend));
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
    if (!mistake_.empty()) return;
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
      fail(!spec_.host_discovery.empty() ? "host-discovery"
           : spec_.hosts_file.empty()    ? "host-list"
                                         : "hosts",
           "every host is a spare");
    spec_.unit = used == 1 ? launcher::hosts::Unit::slot : launcher::hosts::Unit::host;
    if (!find("unit")) return;
    if (text("unit") != "host" && text("unit") != "slot")
      fail("unit", fmt::format("'{}' is not known; use host or slot", text("unit")));
    spec_.unit = text("unit") == "slot" ? launcher::hosts::Unit::slot : launcher::hosts::Unit::host;
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
    if (!mistake_.empty() || !spec_.host_discovery.empty()) return;
    launcher::hosts::HostBook book;
    const auto slots =
        launcher::hosts::make_plan(spec_.hosts, spec_.default_slots, book).slots_by_host;
    const int total = std::accumulate(slots.begin(), slots.end(), 0);
    const launcher::hosts::Limits& limits = spec_.limits;
    const std::string there = fmt::format("the hosts have {} slot{}", total, total == 1 ? "" : "s");
    if (limits.min_hosts > static_cast<int>(slots.size()))
      return fail("nnodes",
                  fmt::format("{} hosts are needed, {} given", limits.min_hosts, slots.size()));
    if (some_slots_are_unknown()) return;
    if (limits.min > total)
      return fail(
          find("min-np") ? "min-np" : "np",
          fmt::format("{} workers are needed, but {}; add hosts, or --slots", limits.min, there));
    const int most = limits.max > 0 ? std::min(limits.max, total) : total;
    if (spec_.start > 0 && (spec_.start < limits.min || spec_.start > most))
      return fail(find("start") ? "start" : "np",
                  fmt::format("cannot begin with {} workers; from {} to {} are possible ({})",
                              spec_.start, limits.min, most, there));
    if (launcher::hosts::reachable_sizes(slots, spec_.unit, limits, spec_.start).empty())
      fail("nnodes", fmt::format("no size is possible within the limits ({})", there));
  }

  // The aim that the user has named, or empty: it selects the policy of that name.
  std::string aim() {
    std::string named;
    for (const std::string name : {"utility", "budget", "deadline"}) {
      if (!find(name)) continue;
      const std::string_view policy = find("policy") ? text("policy") : named;
      if (!policy.empty() && policy != name)
        fail(name, fmt::format("is for the policy {}, and the policy is {}; leave one out", name,
                               policy));
      named = name;
    }
    return named;
  }

  // A range of sizes or a largest batch means that the size may change; one number, that it stays.
  void settle_policy() {
    const launcher::hosts::Limits& limits = spec_.limits;
    const bool range = (find("np") || find("min-np") || find("max-np")) && limits.min != limits.max;
    const bool host_range = limits.min_hosts != limits.max_hosts;
    spec_.policy = range || host_range || spec_.batch.max_batch > 0 ? "fit" : "fixed";
    if (const std::string named = aim(); !named.empty()) spec_.policy = named;
    if (!find("policy")) return;
    if (const auto known = autoscaler::Autoscaler::check_policy(text("policy")); !known)
      return fail("policy", known.error().text);
    spec_.policy = text("policy");
    for (const char* needed : {"utility", "budget", "deadline"})
      if (spec_.policy == needed && !find(needed))
        fail("policy", fmt::format("{0} needs --{0}", needed));
  }

  const Settings& settings_;
  const launcher::machine::Machine& machine_;
  job::JobSpec spec_;
  std::string mistake_;  // the first one; empty: none
};

}  // namespace

Result<job::JobSpec> to_spec(const Settings& settings, const launcher::machine::Machine& machine) {
  return Converter(settings, machine).run();
}

}  // namespace elasticrun::cli::run
