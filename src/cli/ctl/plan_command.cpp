// See plan_command.hpp. Prints one row for each size and marks the best one for the user's aim.
#include "cli/ctl/plan_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "autoscaler/decision_text.hpp"
#include "autoscaler/forecast.hpp"
#include "cli/ctl/plan_run.hpp"
#include "job/core/hosts/prices.hpp"
#include "launcher/hosts/plan.hpp"
#include "simulate/what_if/history.hpp"
#include "simulate/what_if/one_size.hpp"

namespace elasticrun::cli::ctl {

namespace {

using autoscaler::Chance;
using autoscaler::Offer;
using simulate::what_if::History;

bool measured(const History& history, int size) {
  return std::ranges::count(history.curve, size, &autoscaler::Measure::size) > 0;
}

// The slots that the planned job can use, with prices where the host file has any.
struct Places {
  std::vector<job::SlotId> slots;
  std::vector<double> prices;
  std::vector<int> sizes;  // by default: whole hosts, or powers of two without a host file
};

Places places_of(const std::vector<launcher::hosts::Host>& hosts, const History& history) {
  launcher::hosts::HostBook book;
  const int usual = std::max(history.slots_per_host, 1);
  const launcher::hosts::Plan plan = launcher::hosts::make_plan(hosts, usual, book);
  Places places;
  for (const launcher::hosts::Slot& slot : plan.slots) {
    places.slots.push_back({slot.host, slot.slot});
    places.prices.push_back(slot.price);
  }
  places.sizes =
      launcher::hosts::reachable_sizes(plan.slots_by_host, launcher::hosts::Unit::host, {}, 0);
  return places;
}

// Places on as many hosts as `slots` need, each with as many slots as the hosts of the run had.
Places alike(int slots, const History& history) {
  Places places;
  const int each = std::max(history.slots_per_host, 1);
  for (int i = 0; i < slots; ++i)
    places.slots.push_back({HostId(static_cast<HostId::rep>(i / each)), i % each});
  for (int size = 1; size < slots; size *= 2) places.sizes.push_back(size);
  places.sizes.push_back(slots);
  return places;
}

Result<std::vector<Offer>> offers_of(const PlanCommand& command, const History& history,
                                     const std::vector<launcher::hosts::Host>& hosts) {
  const int largest = history.curve.back().size;
  const int asked = command.sizes.empty() ? 0 : std::ranges::max(command.sizes);
  const int most = std::max({largest, asked, history.slots});
  const Places places = hosts.empty() ? alike(most, history) : places_of(hosts, history);
  std::set<int> sizes(command.sizes.begin(), command.sizes.end());
  if (sizes.empty()) sizes.insert(places.sizes.begin(), places.sizes.end());
  const auto slots = static_cast<int>(places.slots.size());
  if (asked > slots) return Error{fmt::format("--sizes {}: the hosts have {} slots", asked, slots)};
  // Measured sizes are always shown.
  for (const auto& measure : history.curve) sizes.insert(measure.size);
  return job::hosts::offers({sizes.begin(), sizes.end()}, places.slots, places.prices,
                            command.price);
}

struct Told {
  std::vector<Chance> chances;
  autoscaler::Snapshot job;  // a job that has not begun
  int best = 0;
  std::string sense;                            // in what sense `best` is the best
  std::optional<autoscaler::Forecast> promise;  // whether a deadline or budget can be met
};

autoscaler::Bill bill(const Told& told, const Chance& chance, double samples_per_s) {
  return autoscaler::rest_of(told.job, {chance.offer, samples_per_s}).value_or(autoscaler::Bill{});
}

Told judge(const PlanCommand& command, const History& history, std::vector<Offer> offers) {
  Told told;
  told.chances = simulate::what_if::chances(history, offers);
  const double samples = command.samples > 0 ? command.samples : history.samples;
  told.job.samples_left = static_cast<std::int64_t>(samples);
  told.job.offers = std::move(offers);
  autoscaler::Limits limits;
  limits.min_gain = command.min_gain;
  const auto objective = simulate::what_if::objective_of(command.policy, command.aims);
  const auto worth = [&](const Chance& chance) {
    return objective->worth({chance.offer, std::sqrt(chance.low * chance.high)}, told.job, limits);
  };
  told.best = std::ranges::max_element(told.chances, {}, worth)->offer.size;
  told.sense = objective->sense(told.job, limits);
  told.promise = autoscaler::foresee(*objective, told.job, limits, told.chances, {});
  return told;
}

std::string range(const std::string& low, const std::string& high) {
  return low == high ? low : low + " to " + high;
}

std::string row(const Told& told, const Chance& chance, bool measured) {
  const auto slow = bill(told, chance, chance.low);
  const auto fast = bill(told, chance, chance.high);
  return fmt::format(
      "{} {:>6} {:>6}  {:<18} {:<28} {:<18} {}\n", chance.offer.size == told.best ? '*' : ' ',
      chance.offer.size, chance.offer.hosts,
      range(autoscaler::rate_text(chance.low), autoscaler::rate_text(chance.high)),
      range(autoscaler::time_text(fast.seconds), autoscaler::time_text(slow.seconds)),
      range(autoscaler::money_text(fast.money), autoscaler::money_text(slow.money)),
      measured ? "measured" : "predicted");
}

std::string table(const ChosenRun& run, const Told& told) {
  const History& history = run.history;
  std::string text =
      fmt::format("{} samples, from {} that {} {:.0f} of them at {}\n", *told.job.samples_left,
                  run.job.empty() ? "a run" : "job " + run.job,
                  history.finished ? "trained" : "was cut off after", history.samples,
                  fmt::join(
                      [&] {
                        std::vector<int> sizes;
                        for (const auto& measure : history.curve) sizes.push_back(measure.size);
                        return sizes;
                      }(),
                      ", "));
  if (!run.others.empty()) text += run.others + "\n";
  text += fmt::format("  {:>6} {:>6}  {:<18} {:<28} {:<18}\n", "size", "hosts", "samples/s", "time",
                      "cost");
  for (const Chance& chance : told.chances)
    text += row(told, chance, measured(history, chance.offer.size));
  text += fmt::format("* best {}\n", told.sense);
  if (told.promise) text += told.promise->words + "\n";
  return text;
}

std::string lines(const ChosenRun& run, const Told& told) {
  const History& history = run.history;
  std::string text;
  for (const Chance& chance : told.chances) {
    const auto slow = bill(told, chance, chance.low);
    const auto fast = bill(told, chance, chance.high);
    const job::report::Event event{"size",
                                   {{"size", static_cast<std::int64_t>(chance.offer.size)},
                                    {"hosts", static_cast<std::int64_t>(chance.offer.hosts)},
                                    {"measured", measured(history, chance.offer.size)},
                                    {"samples_per_s_low", chance.low},
                                    {"samples_per_s_high", chance.high},
                                    {"wall_s_low", fast.seconds},
                                    {"wall_s_high", slow.seconds},
                                    {"cost_low", fast.money},
                                    {"cost_high", slow.money},
                                    {"best", chance.offer.size == told.best}}};
    text += job::report::to_json(event, history.last, run.job) + '\n';
  }
  if (!told.promise) return text;
  const job::report::Event event{"promise",
                                 {{"met", told.promise->met},
                                  {"wall_s", told.promise->seconds},
                                  {"cost", told.promise->cost},
                                  {"reason", told.promise->words}}};
  return text + job::report::to_json(event, history.last, run.job) + '\n';
}

}  // namespace

Result<Report> plan_command(const PlanCommand& command,
                            const std::vector<job::report::Event>& events,
                            const std::vector<launcher::hosts::Host>& hosts) {
  const auto run = choose_run(events, command.job, command.events);
  if (!run) return run.error();
  const History& history = run->history;
  if (command.samples <= 0 && history.samples < 1)
    return Error{command.events + ": it does not say how many samples were trained; use --samples"};
  auto offers = offers_of(command, history, hosts);
  if (!offers) return offers.error();
  const Told told = judge(command, history, std::move(*offers));
  return Report{command.json ? lines(*run, told) : table(*run, told)};
}

}  // namespace elasticrun::cli::ctl
