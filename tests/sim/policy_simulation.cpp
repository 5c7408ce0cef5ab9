// A case of `elasticctl simulate`: a random cluster, a random policy, mishaps of all kinds.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/rng.hpp"
#include "policy_cases.hpp"
#include "simulate/what_if/one_size.hpp"
#include "simulate/what_if/what_if.hpp"

namespace elasticrun::sim {

namespace {

using namespace std::chrono_literals;

std::chrono::seconds up_to(Rng& rng, std::uint64_t seconds) {
  return std::chrono::seconds(rng.below(seconds + 1));
}

std::set<int> draw_sizes(Rng& rng) {
  std::set<int> sizes;
  const auto most = 1 + rng.below(rng.chance(0.5) ? 8 : 60);
  for (std::uint64_t n = 1 + rng.below(8); n > 0; --n)
    sizes.insert(1 + static_cast<int>(rng.below(most)));
  return sizes;
}

// The throughputs of the rows rise, fall, or jump.
std::string draw_rows(const std::set<int>& sizes, Rng& rng) {
  std::string text = "columns: size samples/s compute\n";
  const double one = between(rng, 10, 1e5);
  const double power = rng.chance(0.2) ? -0.5 : rng.uniform();
  const double jumps = rng.chance(0.3) ? rng.uniform() : 0;
  for (const int size : sizes)
    text += fmt::format("{} {:.6g} {:.3f}\n", size,
                        one * std::pow(size, power) * std::exp(jumps * (rng.uniform() - 0.5)),
                        0.05 + 0.95 * rng.uniform());
  return text;
}

std::string draw_law(const std::set<int>& sizes, Rng& rng) {
  std::string text = "law:";
  for (int i = 0; i < 6; ++i)
    text += fmt::format(" {:.6g}", i > 0 && rng.chance(0.3) ? 0 : between(rng, 1e-6, 0.1));
  text += "\nsizes:";
  for (const int size : sizes) text += fmt::format(" {}", size);
  return text + "\n";
}

std::string draw_curve(Rng& rng) {
  const auto sizes = draw_sizes(rng);
  const bool law = rng.chance(0.4);
  std::string text = fmt::format("samples: {:.0f}\n", between(rng, 1000, 1e9));
  const bool batch = law || rng.chance(0.7);
  if (batch) text += fmt::format("batch: {}\n", 1 + rng.below(256));
  if (batch && rng.chance(0.5)) text += fmt::format("max-batch: {}\n", 1 + rng.below(8192));
  if (batch && rng.chance(0.3))
    text += fmt::format("noise-scale: {} {}\n", 1 + rng.below(500), 1 + rng.below(50000));
  if (rng.chance(0.6)) {
    text += fmt::format("slots-per-host: {}\n", 1 + rng.below(8));
  } else {
    int slots = 0;
    for (int host = 1; slots < *sizes.rbegin() + 3; ++host) {
      const int more = 1 + static_cast<int>(rng.below(8));
      text += fmt::format("hosts: h{} slots={} price={:.2f} type={}\n", host, more,
                          rng.chance(0.3) ? 0.01 : 10 * rng.uniform() + 0.01,
                          rng.chance(0.5) ? "fast" : "slow");
      slots += more;
    }
  }
  return text + (law ? draw_law(sizes, rng) : draw_rows(sizes, rng));
}

simulate::what_if::Conditions draw_conditions(Rng& rng) {
  const auto often = [&] { return rng.chance(0.5) ? 0 : between(rng, 0.05, 20); };
  simulate::what_if::Conditions conditions;
  conditions.noise = rng.chance(0.3) ? 0 : rng.uniform();
  const Duration start = up_to(rng, 60);
  conditions.start = {start, start + up_to(rng, 30)};
  conditions.idle = up_to(rng, 3);
  conditions.spares = static_cast<int>(rng.below(3));
  conditions.report = 2s;
  conditions.limit = 1min + up_to(rng, 3600);
  conditions.failures_per_hour = often();
  conditions.revoked_per_hour = often();
  conditions.notice = rng.chance(0.5) ? 0s : up_to(rng, 180);
  conditions.recovery = up_to(rng, 5);
  conditions.new_host = up_to(rng, 120);
  conditions.slow_per_hour = often();
  conditions.slow_speed = 0.1 + 0.9 * rng.uniform();
  conditions.slow_time = up_to(rng, 1200);
  conditions.stragglers = static_cast<job::StragglerAction>(rng.below(3));
  conditions.shares_by_speed = rng.chance(0.7);
  return conditions;
}

simulate::what_if::Question draw_question(const std::vector<int>& sizes, Rng& rng) {
  simulate::what_if::Question question;
  const auto names = autoscaler::Autoscaler::policies();
  question.policy = names[rng.below(names.size())];
  if (question.policy == "exec") question.policy += ":any";
  question.start = rng.chance(0.2) ? 0 : sizes[rng.below(sizes.size())];
  question.aims = {.utility = {{1min, 20}, {1h, 5}},
                   .budget = between(rng, 0.01, 1000),
                   .deadline = 1s + up_to(rng, 7200)};
  question.limits.settle = rng.chance(0.3) ? Duration(1ms) : Duration(up_to(rng, 60));
  question.limits.min_gain = rng.chance(0.5) ? 0.1 : rng.uniform();
  question.seed = rng.next();
  question.advisor = [chance = Rng(rng.next())](const autoscaler::Question& asked) mutable {
    const auto& can_be = asked.limits.sizes;
    return Result<autoscaler::Advice>(
        autoscaler::Advice{can_be[chance.below(can_be.size())], "by chance"});
  };
  return question;
}

std::string command(const simulate::what_if::Conditions& conditions,
                    const simulate::what_if::Question& question) {
  const auto ms = [](Duration time) { return fmt::format("{:.0f}ms", milliseconds(time)); };
  constexpr const char* actions[] = {"off", "report", "replace"};
  std::string text = fmt::format(
      "elasticctl simulate --curve FILE --policy {} --seed {} --noise {} --start-time {}:{} "
      "--idle {} --spares {} --limit {} --failures {} --revoked {} --notice {} --recovery {} "
      "--new-host {} --slow-hosts {} --slow-speed {} --slow-time {} --stragglers {} --shares {} "
      "--settle {} --min-gain {} --budget {} --deadline {} --utility 1m:20,1h:5",
      question.policy, question.seed, conditions.noise, ms(conditions.start.low),
      ms(conditions.start.high), ms(conditions.idle), conditions.spares, ms(conditions.limit),
      conditions.failures_per_hour, conditions.revoked_per_hour, ms(conditions.notice),
      ms(conditions.recovery), ms(conditions.new_host), conditions.slow_per_hour,
      conditions.slow_speed, ms(conditions.slow_time),
      actions[static_cast<int>(conditions.stragglers)],
      conditions.shares_by_speed ? "speed" : "equal", ms(question.limits.settle),
      question.limits.min_gain, question.aims.budget, ms(question.aims.deadline));
  if (question.start > 0) text += fmt::format(" --start {}", question.start);
  return text;
}

std::string story(const simulate::what_if::Outcome& outcome) {
  std::multimap<Time, std::string> lines;
  for (const simulate::what_if::Note& note : outcome.notes) lines.emplace(note.at, note.text);
  for (const simulate::what_if::Moved& move : outcome.moves)
    lines.emplace(move.at, fmt::format("{} -> {}: {}", move.from, move.to, move.reason));
  std::string text;
  for (const auto& [at, line] : lines)
    text += fmt::format("{:9.1f} s  {}\n", seconds(at - Time{}), line);
  return text +
         fmt::format("{:9.1f} s  ends at {}: {}", outcome.seconds, outcome.size, outcome.reason);
}

void check(const simulate::what_if::Outcome& out, const simulate::what_if::Curve& curve,
           const simulate::what_if::Conditions& conditions) {
  const auto& sizes = curve.sizes();
  for (const simulate::what_if::Moved& move : out.moves) {
    require(std::ranges::binary_search(sizes, move.to), "sizes are lawful",
            fmt::format("{} is none of the curve's: {}", move.to, move.reason));
    require(!move.reason.empty(), "every decision has a reason", "a move has none");
  }
  require(out.size >= 0 && out.size <= sizes.back(), "sizes are lawful",
          fmt::format("it ends with {}", out.size));
  for (const double figure : {out.seconds, out.worker_seconds, out.cost, out.samples,
                              out.weighed_seconds, out.moved_s, out.found_s})
    require(std::isfinite(figure) && figure >= 0, "figures are numbers",
            fmt::format("{} among those of the end", figure));
  require(out.done || out.size == 0 || out.seconds >= seconds(conditions.limit),
          "a job ends, is cut off, or is lost",
          fmt::format("it ended after {} s: {}", out.seconds, out.reason));
  require(!out.reason.empty(), "every decision has a reason", "the last words are empty");
}

}  // namespace

void play_simulation(std::uint64_t seed, const Tell& tell) {
  Rng rng(mix(seed));
  const std::string text = draw_curve(rng);
  const auto curve = simulate::what_if::Curve::parse(text, "curve");
  require(curve.has_value(), "curves are read", curve ? "" : text + curve.error().text);
  const auto conditions = draw_conditions(rng);
  const auto question = draw_question(curve->sizes(), rng);
  if (tell)
    tell(fmt::format("seed {}, of this curve:\n{}{}", seed, text, command(conditions, question)));
  const auto outcome = simulate::what_if::answer(*curve, conditions, question);
  require(outcome.has_value(), "a simulation ends", outcome ? "" : outcome.error().text);
  if (tell) tell(story(*outcome));
  check(*outcome, *curve, conditions);
}

}  // namespace elasticrun::sim
