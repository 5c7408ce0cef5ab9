// The rules that must hold in a controller's case, whatever happens in it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <set>

#include "job/report/advice.hpp"
#include "policy_stage.hpp"

namespace elasticrun::sim {

namespace {

using autoscaler::Action;

// Whether the text contains "nan" or "inf" as a word.
bool tells_no_number(std::string_view text) {
  constexpr std::string_view ends = " ,;:()%+-";
  for (const std::string_view word : {"nan", "inf"})
    for (auto at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
      const auto end = at + word.size();
      const bool left = at == 0 || ends.find(text[at - 1]) != ends.npos;
      if (left && (end == text.size() || ends.find(text[end]) != ends.npos)) return true;
    }
  return false;
}

void check_words(const std::string& reason) {
  require(!reason.empty(), "every decision has a reason", "it is empty");
  require(reason.find('\n') == reason.npos, "every decision has a reason", "of two lines");
  require(!tells_no_number(reason), "figures are numbers", reason);
}

}  // namespace

void Stage::check(const autoscaler::Decision& made) const {
  check_words(made.reason);
  for (const autoscaler::Figure& figure : made.figures)
    require(std::isfinite(figure.value), "figures are numbers",
            fmt::format("{} {} ({})", figure.name, figure.value, made.reason));
  require(scaler_.wake_at() > now_, "no busy waiting",
          fmt::format("it wants to be asked again at once: {}", made.reason));
  if (made.action == Action::stay || made.action == Action::rebatch) {
    require(made.target == size(), "sizes are lawful",
            fmt::format("{} run, and {} is the target of a {}", size(), made.target,
                        autoscaler::to_text(made.action)));
  } else {
    check_target(made.target);
    require((made.action == Action::grow) == (made.target > size()), "sizes are lawful",
            fmt::format("{} from {} to {}", autoscaler::to_text(made.action), size(), made.target));
  }
  require(made.global_batch >= 0 && made.global_batch <= autoscaler::most_global_batch,
          "batches are lawful", fmt::format("a batch of {} is chosen", made.global_batch));
  if (made.action == Action::stay) return;
  require(!unsettled_, "one change at a time", made.reason);
  require(now_ >= quiet_since_ + setting_.options.limits.settle, "changes keep their distance",
          fmt::format("{} after the last: {}", to_text(now_ - quiet_since_), made.reason));
}

// Counts the possible sizes once more, in the plainest way.
void Stage::check_target(int target) const {
  int slots = 0;
  std::set<int> ends;
  for (const Host& host : hosts_)
    if (host.listed) ends.insert(slots += host.slots);
  const launcher::hosts::Limits& limits = setting_.limits;
  const int most = limits.max > 0 ? std::min(limits.max, slots) : slots;
  const auto said = fmt::format("{} is decided on; {} slots, workers {}:{}", target, slots,
                                limits.min, limits.max);
  require(target >= limits.min && target <= most, "sizes are lawful", said);
  require(std::ranges::count(sizes_, target) == 1, "sizes are lawful",
          fmt::format("{}, sizes {}", said, fmt::join(sizes_, " ")));
  if (setting_.unit == launcher::hosts::Unit::host)
    require(ends.contains(target) || target == most || target == setting_.start, "sizes are lawful",
            said + ", whole hosts only");
}

void Stage::check(const BatchPlan& plan, int size) const {
  const std::int64_t most = setting_.options.batch.max_batch;
  const bool lawful = plan.global_batch >= 0 &&
                      plan.global_batch <= autoscaler::most_global_batch &&
                      (most == 0 || plan.global_batch <= most) && plan.micro_batch >= 0 &&
                      plan.noise_base >= 0 && std::isfinite(plan.lr_factor) && plan.lr_factor > 0;
  require(lawful, "batches are lawful",
          fmt::format("global {}, micro {}, noise base {}, factor {}", plan.global_batch,
                      plan.micro_batch, plan.noise_base, plan.lr_factor));
  if (plan.weights.empty()) return;
  require(std::ssize(plan.weights) == size, "shares are lawful", "not one for each rank");
  double all = 0;
  for (const double weight : plan.weights) {
    require(std::isfinite(weight) && weight >= 0, "shares are lawful", fmt::format("{}", weight));
    all += weight;
  }
  require(all > 0, "shares are lawful", "nobody computes anything");
}

void Stage::check_members(const std::vector<WorkerId>& members) const {
  std::set<job::SlotId> taken;
  for (const WorkerId member : members) {
    const job::SlotId slot = workers_.find(member)->slot;
    const auto host = std::ranges::find(hosts_, slot.host, &Host::id);
    require(host->listed, "no host that is gone",
            fmt::format("worker {} is on host {}", member.value, slot.host.value));
    require(slot.index < host->slots, "no slot that is gone",
            fmt::format("worker {} is in slot {} of {}", member.value, slot.index, host->slots));
    require(taken.insert(slot).second, "a worker for each slot",
            fmt::format("slot {} of host {} has two", slot.index, slot.host.value));
  }
}

void Stage::check_money() {
  const double spent = scaler_.spent(now_);
  require(std::isfinite(spent) && spent >= spent_ * (1 - 1e-9), "money is only spent",
          fmt::format("{} after {}", spent, spent_));
  spent_ = spent;
}

void Stage::check_question(const autoscaler::Question& question) const {
  const std::string text = job::report::question_text(question);
  boost::json::error_code error;
  boost::json::parse(text, error);
  require(!error, "questions are JSON", text);
}

}  // namespace elasticrun::sim
