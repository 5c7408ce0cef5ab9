// The decisions of the policy `fit`, with their text and numbers.
#include <fmt/format.h>

#include <utility>

#include "autoscaler/decision_text.hpp"
#include "autoscaler/fit.hpp"

namespace elasticrun::autoscaler {

// "8", or "8 at batch 512" where the policy also chooses the batch.
std::string Fit::name(const Setting& setting) const {
  if (!chooses_batch()) return fmt::to_string(setting.size);
  return fmt::format("{} at batch {}", setting.size, setting.global_batch);
}

// "8 workers", or "8 workers at batch 512".
std::string Fit::workers(const Setting& setting) const {
  const std::string count = workers_text(setting.size);
  return chooses_batch() ? fmt::format("{} at batch {}", count, setting.global_batch) : count;
}

// "8 workers bring"
std::string Fit::bring(const Setting& setting) const {
  return workers(setting) + (setting.size == 1 ? " brings" : " bring");
}

Decision Fit::going(const View& view, const Setting& to, std::string reason) const {
  Decision made = decision(view.snapshot.size, to.size, std::move(reason));
  if (!chooses_batch()) return made;
  made.global_batch = to.global_batch;
  if (made.action == Action::stay) made.action = Action::rebatch;
  return made;
}

Decision Fit::explore(const View& view, const Promise& here, const Promise& unseen) const {
  const std::string to = name(unseen.setting);
  // Where the batch is chosen, samples/s alone do not explain the move.
  const std::string why = chooses_batch()
                              ? fmt::format(", {} {}", gain_text(unseen.gain, "+"),
                                            objective_->sense(view.snapshot, view.limits))
                              : "";
  Decision made = going(view, unseen.setting,
                        fmt::format("{}{} {} samples/s, {} promise {} to {}{}: {} to {} to measure",
                                    drift_, bring(here.setting), rate_text(here.low), to,
                                    rate_text(unseen.low), rate_text(unseen.high), why,
                                    direction(here.setting.size, unseen.setting.size), to));
  made.figures = {{"samples_per_s", here.low},
                  {"promised_low", unseen.low},
                  {"promised_high", unseen.high},
                  {"gain", unseen.gain},
                  {"min_gain", view.limits.min_gain}};
  return made;
}

Decision Fit::go_back(const View& view, const Promise& here, const Promise& best) const {
  const double gain = best.low_worth / here.low_worth - 1;
  Decision made =
      going(view, best.setting,
            fmt::format("{}{} brought {} samples/s, {} bring {}: {} better {}, {} to {}", drift_,
                        workers(best.setting), rate_text(best.low), name(here.setting),
                        rate_text(here.low), gain_text(gain),
                        objective_->sense(view.snapshot, view.limits),
                        direction(here.setting.size, best.setting.size), name(best.setting)));
  made.figures = {{"samples_per_s", here.low},
                  {"best_samples_per_s", best.low},
                  {"gain", gain},
                  {"min_gain", view.limits.min_gain}};
  return made;
}

Decision Fit::settle(const View& view, const Promise& here, const Promise& next,
                     const char* why_not) {
  if (searching_) times_ = settled_ == here.setting ? times_ + 1 : 1;
  // Also set without a search: a loss may have led here, and this size is judged from now on.
  settled_ = here.setting;
  searching_ = false;
  drift_.clear();
  judged_rounds_ = known_.at(here.setting).visit.rounds;
  judged_by_ = grounds(view);
  std::string reason =
      fmt::format("staying at {}: {} samples/s", name(here.setting), rate_text(here.low));
  if (next.setting.size != 0)
    reason += fmt::format(", {} {} {} samples/s, {} {}", name(next.setting),
                          next.measured ? "brought" : "promise at best", rate_text(next.high),
                          gain_text(next.high_worth / here.low_worth - 1, "+"),
                          objective_->sense(view.snapshot, view.limits));
  reason += why_not;
  Decision made = decision(here.setting.size, here.setting.size, std::move(reason));
  made.figures = {{"samples_per_s", here.low}, {"min_gain", view.limits.min_gain}};
  return made;
}

Decision Fit::told(const View& view, const std::vector<Promise>& all, Decision made) {
  made.forecast = forecast(view, all);
  if (!made.forecast) return made;
  met_ = made.forecast->met;
  if (made.action == Action::stay) made.reason += "; " + made.forecast->words;
  made.figures.push_back({"predicted_s", made.forecast->seconds});
  made.figures.push_back({"predicted_cost", made.forecast->cost});
  made.figures.push_back({"met", made.forecast->met ? 1.0 : 0.0});
  return made;
}

Decision Fit::measuring(const View& view) {
  const int size = view.snapshot.size;
  return decision(size, size,
                  fmt::format("measuring {}: {} steps in {} reports are needed", workers_text(size),
                              view.limits.min_steps, least_rounds));
}

}  // namespace elasticrun::autoscaler
