// See simulate_command.hpp. One seed is reported move by move, several seeds by quantiles.
#include "cli/ctl/simulate_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "job/report/event.hpp"
#include "simulate/what_if/one_size.hpp"

namespace elasticrun::cli::ctl {

namespace {

using simulate::what_if::Curve;
using simulate::what_if::Outcome;

// Virtual time in RFC 3339; it begins at the Unix epoch.
std::string timestamp(double s) {
  const auto ms = static_cast<std::int64_t>(s * 1000);
  const std::chrono::sys_days day(std::chrono::days(ms / 86'400'000));
  const std::chrono::year_month_day date(day);
  const std::int64_t rest = ms % 86'400'000;
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     rest / 3'600'000, rest / 60'000 % 60, rest / 1000 % 60, rest % 1000);
}

std::string time_text(double s) { return to_text(Duration(static_cast<std::int64_t>(s * 1e9))); }

// The difference to a job that stays at one size, in percent.
std::string against(double value, double still) {
  return fmt::format("{:+.1f} %", 100 * (value / still - 1));
}

// The worth of each size to the policy, and the outcome of a job that has the best size from the
// beginning.
struct Best {
  std::map<int, double> worths;
  Outcome still;
  double worth_of(int size) const {
    const auto found = worths.find(size);
    return found == worths.end() ? 0 : found->second;
  }
};

Best best_of(const SimulateCommand& command, const Curve& curve) {
  const auto& [conditions, question] = std::tie(command.conditions, command.question);
  const int size = simulate::what_if::best_size(curve, conditions, question);
  return {simulate::what_if::worths(curve, conditions, question),
          simulate::what_if::at_one_size(curve, conditions, question, size)};
}

std::string event_lines(const SimulateCommand& command, const Curve& curve, std::uint64_t seed,
                        const Outcome& outcome) {
  std::string lines;
  if (command.seeds == 1) {
    for (const simulate::what_if::Moved& move : outcome.moves) {
      const std::string_view action =
          autoscaler::to_text(autoscaler::decision(move.from, move.to, "").action);
      job::report::Event event{"decision",
                               {{"policy", command.question.policy},
                                {"action", move.to == move.from ? "rebatch" : std::string(action)},
                                {"from", static_cast<std::int64_t>(move.from)},
                                {"target", static_cast<std::int64_t>(move.to)},
                                {"reason", move.reason}}};
      if (move.global_batch > 0) event.fields.emplace_back("global_batch", move.global_batch);
      lines += job::report::to_json(event, timestamp(seconds(move.at - Time{}))) + '\n';
    }
  }
  const Best best = best_of(command, curve);
  job::report::Event finished{
      "job_finished",
      {{"policy", command.question.policy},
       {"start", static_cast<std::int64_t>(command.question.start > 0 ? command.question.start
                                                                      : curve.sizes().back())},
       {"seed", static_cast<std::int64_t>(seed)},
       {"done", outcome.done},
       {"wall_s", outcome.seconds},
       {"worker_s", outcome.worker_seconds},
       {"cost", outcome.cost},
       {"samples", outcome.samples},
       {"size", static_cast<std::int64_t>(outcome.size)},
       {"global_batch", outcome.global_batch},
       {"worth", best.worth_of(outcome.size)},
       {"moves", static_cast<std::int64_t>(outcome.moves.size())},
       {"moved_s", outcome.moved_s},
       {"found_s", outcome.found_s},
       {"failures", static_cast<std::int64_t>(outcome.failures)},
       {"revoked", static_cast<std::int64_t>(outcome.revoked)},
       {"slow_phases", static_cast<std::int64_t>(outcome.slow_phases)},
       {"stragglers", static_cast<std::int64_t>(outcome.stragglers)},
       {"replaced", static_cast<std::int64_t>(outcome.replaced)},
       {"weighed", outcome.weighed_seconds / best.still.weighed_seconds},
       {"best_size", static_cast<std::int64_t>(best.still.size)},
       {"best_wall_s", best.still.seconds},
       {"best_worker_s", best.still.worker_seconds},
       {"best_cost", best.still.cost},
       {"reason", outcome.reason}}};
  if (outcome.met) finished.fields.emplace_back("met", *outcome.met);
  if (outcome.refused_s) finished.fields.emplace_back("refused_s", *outcome.refused_s);
  return lines + job::report::to_json(finished, timestamp(outcome.seconds)) + '\n';
}

std::string header(const SimulateCommand& command, const Curve& curve, const Outcome& still) {
  return fmt::format(
      "{}: {} sizes from {} to {}, best is {} ({}, {:.1f} worker hours)\n"
      "policy {}, {:.0f} % noise\n",
      curve.title().empty() ? command.curve : curve.title(), curve.sizes().size(),
      curve.sizes().front(), curve.sizes().back(), still.size, time_text(still.seconds),
      still.worker_seconds / 3600, command.question.policy, 100 * command.conditions.noise);
}

// The moves, and as many notes as there is room for, in order of time.
std::string story(const Outcome& outcome) {
  constexpr std::size_t most_told = 30;
  std::vector<std::pair<Time, std::string>> told;
  for (const simulate::what_if::Moved& move : outcome.moves) {
    const std::string batch =
        move.global_batch > 0 ? fmt::format(" at batch {}", move.global_batch) : "";
    told.emplace_back(move.at,
                      fmt::format("{} -> {}{}  {}", move.from, move.to, batch, move.reason));
  }
  for (const simulate::what_if::Note& note : outcome.notes) {
    if (told.size() == most_told) break;
    told.emplace_back(note.at, note.text);
  }
  std::ranges::stable_sort(told, {}, [](const auto& one) { return one.first; });
  std::string text;
  for (const auto& [at, what] : told)
    text += fmt::format("{:>12}  {}\n", time_text(seconds(at - Time{})), what);
  const std::size_t all = outcome.moves.size() + outcome.notes.size();
  if (all > told.size()) text += fmt::format("{:>12}  and {} more\n", "", all - told.size());
  return text;
}

// Counts of failures, removals and slow phases; each only when the user gave it a rate.
std::string mishaps(const simulate::what_if::Conditions& conditions, const Outcome& outcome) {
  std::string text;
  if (conditions.failures_per_hour > 0) text += fmt::format("hosts lost   {}\n", outcome.failures);
  if (conditions.revoked_per_hour > 0) text += fmt::format("taken away   {}\n", outcome.revoked);
  if (conditions.slow_per_hour > 0)
    text += fmt::format("slow phases  {}; {} slow workers found, {} replaced\n",
                        outcome.slow_phases, outcome.stragglers, outcome.replaced);
  return text;
}

std::string limit(const SimulateCommand& command, const Outcome& outcome) {
  if (!outcome.met) return {};
  const auto& [policy, aims] = std::tie(command.question.policy, command.question.aims);
  const std::string asked =
      policy == "deadline" ? to_text(aims.deadline) : fmt::format("{:.2f}", aims.budget);
  std::string text = fmt::format("{:<12} {}, {}", policy, asked, *outcome.met ? "met" : "not met");
  if (outcome.refused_s)
    text += fmt::format("; said that it cannot be after {}", time_text(*outcome.refused_s));
  return text + '\n';
}

std::string told(const SimulateCommand& command, const Curve& curve, const Outcome& outcome) {
  const Outcome still = best_of(command, curve).still;
  // A job that was cut off is not compared.
  const auto compared = [&](double value, double other) {
    return outcome.done ? fmt::format(" ({} against the best size)", against(value, other)) : "";
  };
  std::string text = header(command, curve, still) + story(outcome);
  text += fmt::format("{:>12}  {} at {}  {}\n", time_text(outcome.seconds),
                      outcome.done ? "ends" : "is cut off", outcome.size, outcome.reason);
  text += fmt::format("time         {}{}\n", time_text(outcome.seconds),
                      compared(outcome.seconds, still.seconds));
  text += fmt::format("worker hours {:.2f}{}\n", outcome.worker_seconds / 3600,
                      compared(outcome.worker_seconds, still.worker_seconds));
  text += fmt::format("cost         {:.2f}{}\n", outcome.cost, compared(outcome.cost, still.cost));
  text += limit(command, outcome);
  text +=
      fmt::format("moves        {}, the last one after {}; within 5 % of the best size after {}\n",
                  outcome.moves.size(), time_text(outcome.moved_s), time_text(outcome.found_s));
  return text + mishaps(command.conditions, outcome);
}

std::string spread(std::string_view name, std::vector<double> values, std::string_view unit) {
  std::ranges::sort(values);
  const auto at = [&](double part) {
    return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
  };
  return fmt::format("{:<22} {:>10.2f} {:>10.2f} {:>10.2f} {:>10.2f}  {}\n", name, at(0.05),
                     at(0.5), at(0.95), at(1), unit);
}

std::string told(const SimulateCommand& command, const Curve& curve,
                 const std::vector<Outcome>& outcomes) {
  const auto of = [&](auto member) {
    std::vector<double> values;
    for (const Outcome& outcome : outcomes) values.push_back(member(outcome));
    return values;
  };
  std::string text = header(command, curve, best_of(command, curve).still);
  text += fmt::format("{:<22} {:>10} {:>10} {:>10} {:>10}\n",
                      fmt::format("{} seeds", outcomes.size()), "5 %", "middle", "95 %", "most");
  text +=
      spread("size at the end", of([](auto& o) { return static_cast<double>(o.size); }), "workers");
  text += spread("time", of([](auto& o) { return o.seconds / 60; }), "minutes");
  text += spread("worker time", of([](auto& o) { return o.worker_seconds / 3600; }), "hours");
  text += spread("cost", of([](auto& o) { return o.cost; }), "");
  text += spread("moves", of([](auto& o) { return static_cast<double>(o.moves.size()); }), "");
  text += spread("last move after", of([](auto& o) { return o.moved_s; }), "seconds");
  text += spread("within 5 % after", of([](auto& o) { return o.found_s; }), "seconds");
  if (outcomes.front().met) {
    const auto met = std::ranges::count(outcomes, true, [](auto& o) { return *o.met; });
    const auto refused =
        std::ranges::count_if(outcomes, [](auto& o) { return !*o.met && o.refused_s.has_value(); });
    text += fmt::format("{} met by {}, said to be out of reach in {} others\n",
                        command.question.policy, met, refused);
  }
  return text;
}

}  // namespace

Result<Report> simulate_command(const SimulateCommand& command, const Curve& curve) {
  std::vector<Outcome> outcomes;
  std::string lines;
  for (int i = 0; i < command.seeds; ++i) {
    simulate::what_if::Question question = command.question;
    question.seed += static_cast<std::uint64_t>(i);
    auto outcome = simulate::what_if::answer(curve, command.conditions, question);
    if (!outcome) return outcome.error();
    if (command.json) lines += event_lines(command, curve, question.seed, *outcome);
    outcomes.push_back(std::move(*outcome));
  }
  if (command.json) return Report{std::move(lines)};
  if (command.seeds == 1) return Report{told(command, curve, outcomes.front())};
  return Report{told(command, curve, outcomes)};
}

}  // namespace elasticrun::cli::ctl
