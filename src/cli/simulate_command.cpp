// One seed is told move by move, many by their middle and their ends.
#include "cli/simulate_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "job/event.hpp"

namespace elasticrun::cli {

namespace {

using simulate::Curve;
using simulate::Outcome;

// Virtual time begins where the calendar of computers does.
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

// A loss or a gain against staying at one size, in percent.
std::string against(double value, double still) {
  return fmt::format("{:+.1f} %", 100 * (value / still - 1));
}

std::string event_lines(const SimulateCommand& command, const Curve& curve, std::uint64_t seed,
                        const Outcome& outcome) {
  const double gain = command.question.limits.min_gain;
  std::string lines;
  if (command.seeds == 1) {
    for (const simulate::Moved& move : outcome.moves) {
      const job::Event event{"decision",
                             {{"policy", command.question.policy},
                              {"action", std::string(move.to > move.from ? "grow" : "shrink")},
                              {"from", static_cast<std::int64_t>(move.from)},
                              {"target", static_cast<std::int64_t>(move.to)},
                              {"reason", move.reason}}};
      lines += job::to_json(event, timestamp(seconds(move.at - Time{}))) + '\n';
    }
  }
  const int best = simulate::best_size(curve, gain);
  const Outcome still = simulate::at_one_size(curve, command.conditions, best, gain);
  const job::Event finished{
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
       {"worth", simulate::relative_worth(curve, outcome.size, gain)},
       {"moves", static_cast<std::int64_t>(outcome.moves.size())},
       {"moved_s", outcome.moved_s},
       {"found_s", outcome.found_s},
       {"failures", static_cast<std::int64_t>(outcome.failures)},
       {"weighed", outcome.weighed_seconds / still.weighed_seconds},
       {"best_size", static_cast<std::int64_t>(best)},
       {"best_wall_s", still.seconds},
       {"best_worker_s", still.worker_seconds},
       {"reason", outcome.reason}}};
  return lines + job::to_json(finished, timestamp(outcome.seconds)) + '\n';
}

std::string header(const SimulateCommand& command, const Curve& curve) {
  const double gain = command.question.limits.min_gain;
  const int best = simulate::best_size(curve, gain);
  const Outcome still = simulate::at_one_size(curve, command.conditions, best, gain);
  return fmt::format(
      "{}: {} sizes from {} to {}, best is {} ({}, {:.1f} worker hours)\n"
      "policy {}, {:.0f} % noise\n",
      curve.title().empty() ? command.curve : curve.title(), curve.sizes().size(),
      curve.sizes().front(), curve.sizes().back(), best, time_text(still.seconds),
      still.worker_seconds / 3600, command.question.policy, 100 * command.conditions.noise);
}

std::string told(const SimulateCommand& command, const Curve& curve, const Outcome& outcome) {
  const double gain = command.question.limits.min_gain;
  const Outcome still =
      simulate::at_one_size(curve, command.conditions, simulate::best_size(curve, gain), gain);
  std::string text = header(command, curve);
  for (const simulate::Moved& move : outcome.moves)
    text += fmt::format("{:>12}  {} -> {}  {}\n", time_text(seconds(move.at - Time{})), move.from,
                        move.to, move.reason);
  text += fmt::format("{:>12}  {} at {}  {}\n", time_text(outcome.seconds),
                      outcome.done ? "ends" : "is cut off", outcome.size, outcome.reason);
  text += fmt::format("time         {} ({} against the best size)\n", time_text(outcome.seconds),
                      against(outcome.seconds, still.seconds));
  text += fmt::format("worker hours {:.2f} ({})\n", outcome.worker_seconds / 3600,
                      against(outcome.worker_seconds, still.worker_seconds));
  if (command.conditions.price > 0) text += fmt::format("cost         {:.2f}\n", outcome.cost);
  text +=
      fmt::format("moves        {}, the last one after {}; within 5 % of the best size after {}\n",
                  outcome.moves.size(), time_text(outcome.moved_s), time_text(outcome.found_s));
  if (command.conditions.failures_per_hour > 0)
    text += fmt::format("hosts lost   {}\n", outcome.failures);
  return text;
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
  std::string text = header(command, curve);
  text += fmt::format("{:<22} {:>10} {:>10} {:>10} {:>10}\n",
                      fmt::format("{} seeds", outcomes.size()), "5 %", "middle", "95 %", "most");
  text +=
      spread("size at the end", of([](auto& o) { return static_cast<double>(o.size); }), "workers");
  text += spread("time", of([](auto& o) { return o.seconds / 60; }), "minutes");
  text += spread("worker time", of([](auto& o) { return o.worker_seconds / 3600; }), "hours");
  if (command.conditions.price > 0) text += spread("cost", of([](auto& o) { return o.cost; }), "");
  text += spread("moves", of([](auto& o) { return static_cast<double>(o.moves.size()); }), "");
  text += spread("last move after", of([](auto& o) { return o.moved_s; }), "seconds");
  text += spread("within 5 % after", of([](auto& o) { return o.found_s; }), "seconds");
  return text;
}

}  // namespace

Result<Report> simulate_command(const SimulateCommand& command, const Curve& curve) {
  std::vector<Outcome> outcomes;
  std::string lines;
  for (int i = 0; i < command.seeds; ++i) {
    simulate::Question question = command.question;
    question.seed += static_cast<std::uint64_t>(i);
    auto outcome = simulate::what_if(curve, command.conditions, question);
    if (!outcome) return outcome.error();
    if (command.json) lines += event_lines(command, curve, question.seed, *outcome);
    outcomes.push_back(std::move(*outcome));
  }
  if (command.json) return Report{std::move(lines)};
  if (command.seeds == 1) return Report{told(command, curve, outcomes.front())};
  return Report{told(command, curve, outcomes)};
}

}  // namespace elasticrun::cli
