// Draws the parts of a case: settings, reports that make no sense, answers of a program.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "policy_stage.hpp"

namespace elasticrun::sim {

namespace {

using namespace std::chrono_literals;

int up_to(Rng& rng, int most) {
  return static_cast<int>(rng.below(static_cast<std::uint64_t>(most) + 1));
}

template <class T, std::size_t n>
const T& one_of(Rng& rng, const std::array<T, n>& all) {
  return all[rng.below(n)];
}

autoscaler::Aims draw_aims(Rng& rng) {
  const auto later = std::chrono::seconds(60 + up_to(rng, 7200));
  const double money = between(rng, 0.01, 1000);
  return {.utility = {{60s, money}, {later + 1s, rng.chance(0.2) ? money : money * rng.uniform()}},
          .budget = between(rng, 0.001, 1000),
          .deadline = std::chrono::seconds(1 + up_to(rng, 36000))};
}

constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();

std::int64_t odd_number(Rng& rng) {
  return one_of(rng, std::array<std::int64_t, 7>{0, -1, 1, huge, -huge - 1, 1'000'000'000'000,
                                                 static_cast<std::int64_t>(rng.next())});
}

double odd_figure(Rng& rng) {
  using figure = std::numeric_limits<double>;
  return one_of(rng,
                std::array<double, 8>{0, -1, 1e-300, 1e300, figure::infinity(), -figure::infinity(),
                                      figure::quiet_NaN(), figure::denorm_min()});
}

}  // namespace

Setting draw_setting(Rng& rng) {
  Setting setting;
  const auto names = autoscaler::Autoscaler::policies();
  setting.options.policy = names[rng.below(names.size())];
  if (setting.options.policy == "exec") setting.options.policy += ":any";
  setting.options.aims = draw_aims(rng);
  setting.start = rng.chance(0.5) ? 0 : 1 + up_to(rng, 30);
  setting.options.target = setting.start;
  if (rng.chance(0.7)) setting.options.batch.max_batch = 1 << up_to(rng, 12);
  if (rng.chance(0.7)) setting.options.batch.batch = 1 + up_to(rng, 63);
  if (rng.chance(0.3)) setting.options.batch.base_batch = 1 + up_to(rng, 255);

  setting.limits.min = rng.chance(0.7) ? 1 : 1 + up_to(rng, 5);
  if (rng.chance(0.4)) setting.limits.max = setting.limits.min + up_to(rng, 20);
  if (rng.chance(0.1)) setting.limits.min_hosts = 1 + up_to(rng, 2);
  if (rng.chance(0.1)) setting.limits.max_hosts = 3 + up_to(rng, 5);
  if (rng.chance(0.4)) setting.unit = launcher::hosts::Unit::host;
  autoscaler::Limits& limits = setting.options.limits;
  limits.min = setting.limits.min;
  limits.max = setting.limits.max > 0 ? setting.limits.max : 65536;
  limits.settle = one_of(rng, std::array<Duration, 5>{0s, 1ms, 1s, 10s, 2min});
  limits.min_gain = one_of(rng, std::array<double, 4>{0.1, 0, 1, rng.uniform()});

  setting.turns = 30 + up_to(rng, 270);
  setting.report = one_of(rng, std::array<Duration, 4>{500ms, 1s, 5s, 30s});
  setting.step_s = rng.chance(0.1) ? between(rng, 1e-8, 1e6) : between(rng, 0.01, 2);
  setting.sync_s = rng.chance(0.3) ? 0 : setting.step_s * between(rng, 1e-4, 0.3);
  setting.noise = rng.chance(0.3) ? 0 : 0.3 * rng.uniform();
  setting.mishap = rng.chance(0.2) ? 0 : 0.3 * rng.uniform();
  setting.garbled = rng.chance(0.7) ? 0 : 0.2 * rng.uniform();
  setting.silent = rng.chance(0.7) ? 0 : 0.3 * rng.uniform();
  setting.change_fails = rng.chance(0.5) ? 0 : 0.5 * rng.uniform();
  setting.start_fails = rng.chance(0.5) ? 0 : 0.3 * rng.uniform();
  setting.tells_noise = rng.chance(0.5);
  setting.tells_work = rng.chance(0.6);
  return setting;
}

std::string describe(const Setting& setting) {
  const autoscaler::Limits& limits = setting.options.limits;
  const autoscaler::BatchRule& batch = setting.options.batch;
  return fmt::format(
      "policy {}, workers {}:{}, hosts {}:{}, whole hosts {}, start {}, settle {}, min-gain "
      "{:.2f}, "
      "batch {} max {} base {}, a report every {}, step {:.3g} s and {:.3g} s for each worker, "
      "noise {:.2f}, utility {}, budget {:.3g}, deadline {}",
      setting.options.policy, limits.min, limits.max, setting.limits.min_hosts,
      setting.limits.max_hosts, setting.unit == launcher::hosts::Unit::host, setting.start,
      to_text(limits.settle), limits.min_gain, batch.batch, batch.max_batch, batch.base_batch,
      to_text(setting.report), setting.step_s, setting.sync_s, setting.noise,
      setting.options.aims.utility.front().money, setting.options.aims.budget,
      to_text(setting.options.aims.deadline));
}

void garble(autoscaler::WorkerSample& sample, Rng& rng) {
  switch (rng.below(8)) {
    case 0:
      sample.generation = Generation(sample.generation.value - 1 + 2 * rng.below(2));
      break;
    case 1:
      sample.worker = WorkerId(static_cast<std::uint32_t>(rng.next()));
      break;
    case 2:
      sample.steps = odd_number(rng);
      break;
    case 3:
      sample.samples = odd_number(rng);
      break;
    case 4:
      sample.wall = Duration(odd_number(rng));
      break;
    case 5:
      sample.compute = Duration(odd_number(rng));
      break;
    case 6:
      sample.noise = Noise{odd_figure(rng), odd_figure(rng), odd_number(rng), rng.chance(0.5),
                           odd_figure(rng)};
      break;
    default:
      sample.steps = odd_number(rng);
      sample.samples = odd_number(rng);
      sample.wall = Duration(odd_number(rng));
      sample.compute = Duration(odd_number(rng));
  }
}

namespace {

std::string print_text(int lawful, Rng& rng) {
  switch (rng.below(12)) {
    case 0:
      return fmt::format(R"({{"target":{}}})", odd_number(rng));
    case 1:
      return fmt::format(R"({{"target":{}.5}})", lawful);
    case 2:
      return one_of(rng, std::array<std::string, 8>{
                             "", "4", "[4]", "{}", R"({"target":"4"})", R"({"target":1e400})",
                             R"({"target":4,"reason":7})", std::string(300, '[')});
    case 3:
      return fmt::format("{{\"target\":{},\"reason\":\"a\\nb\xff\"}}", lawful);
    default:
      return fmt::format(R"({{"target":{},"reason":"by chance"}})", lawful);
  }
}

}  // namespace

Result<std::string> print_advice(const autoscaler::Question& question, Rng& rng) {
  if (rng.chance(0.1)) return Error{"was killed by signal 9"};
  const std::vector<int>& sizes = question.limits.sizes;
  const int lawful = sizes[rng.below(sizes.size())];
  return ok(print_text(lawful, rng));
}

}  // namespace elasticrun::sim
