// See invariants.hpp.
#include "simulate/faults/invariants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/exit_code.hpp"
#include "base/rng.hpp"

namespace elasticrun::simulate::faults {

std::uint64_t updated(std::uint64_t digest, const worker::core::Progress& before,
                      worker::core::Range range) {
  for (const std::int64_t part : {before.train_call, before.epoch, range.first, range.last})
    digest = mix(digest ^ (static_cast<std::uint64_t>(part) + 0x9e3779b97f4a7c15ULL));
  return digest;
}

void Invariants::prepared(const wire::World& world) {
  const auto g = world.generation;
  if (const auto known = worlds_.find(g); known != worlds_.end()) {  // sent once to each member
    for (const auto& member : world.members)
      if (!known->second.contains(member.worker))
        throw Violation("generations only grow", fmt::format("{} names two worlds", g.value));
    return;
  }
  if (g <= newest_prepared_)
    throw Violation("generations only grow",
                    fmt::format("{} after {}", g.value, newest_prepared_.value));
  newest_prepared_ = g;
  auto& members = worlds_[g];
  bool source = false;
  for (const auto& member : world.members) {
    if (!members.insert(member.worker).second)
      throw Violation("one rank each",
                      fmt::format("worker {} twice in world {}", member.worker.value, g.value));
    if (dismissed_.contains(member.worker))
      throw Violation("who is out stays out",
                      fmt::format("worker {} in world {}", member.worker.value, g.value));
    source |= member.holds_state;
  }
  if (!source) throw Violation("a world has a source of state", fmt::format("world {}", g.value));
  const auto size = static_cast<int>(members.size());
  if (size < limits_.min - static_cast<int>(left_.size()))
    throw Violation("never below the minimum", fmt::format("world {} of {}", g.value, size));
  // With a maximum of one, a world of two is allowed for the successor to receive the state.
  if (limits_.max > 0 && size > std::max(limits_.max, 2))
    throw Violation("never above the maximum", fmt::format("world {} of {}", g.value, size));
  if (world.reason.empty())
    throw Violation("every decision has a reason", fmt::format("world {}", g.value));
}

void Invariants::reduction_complete(Generation generation) {
  if (generation < newest_reduced_) late_.insert(generation);
  newest_reduced_ = std::max(newest_reduced_, generation);
}

void Invariants::applies(Generation generation) {
  if (late_.contains(generation))
    throw Violation("never two worlds",
                    fmt::format("world {} applies a step after world {} has reduced one",
                                generation.value, newest_reduced_.value));
}

void Invariants::committed(WorkerId worker, Generation generation,
                           const worker::core::Progress& before, worker::core::Range range,
                           std::uint64_t digest) {
  const auto answered = answered_.find(worker);
  if (answered != answered_.end() && generation <= answered->second)
    throw Violation("nothing commits after the answer",
                    fmt::format("worker {} committed in world {} after answering for {}",
                                worker.value, generation.value, answered->second.value));
  const std::int64_t step = before.step + 1;
  auto& record = lineage_[step];
  if (record.generation == generation && record.digest != digest)
    throw Violation("one world, one update", fmt::format("step {} of world {} differs on worker {}",
                                                         step, generation.value, worker.value));
  if (record.generation <= generation) record = {generation, before, range, digest};
  stands_[worker] = {step, generation};
  for (const WorkerId other : worlds_.at(generation)) {
    const auto at = stands_.find(other);
    const bool in_step = at != stands_.end() && at->second.world == generation &&
                         !gone_.contains(other) && !answered_.contains(other);
    if (in_step && std::abs(at->second.step - step) > 1)
      throw Violation("members are at most one step apart",
                      fmt::format("worker {} at {}, worker {} at {}", worker.value, step,
                                  other.value, at->second.step));
  }
}

void Invariants::epoch_ended(Generation generation, std::int64_t step) {
  Generation& newest = epochs_ended_[step];
  newest = std::max(newest, generation);
}

void Invariants::killed(WorkerId worker, std::optional<WorkerId> faulty) {
  if (faulty)
    throw Violation("nobody is killed for another's fault",
                    fmt::format("worker {}, and worker {} is there", worker.value, faulty->value));
}

void Invariants::slot_taken(WorkerId worker, WorkerId other, bool kept) {
  if (!kept)
    throw Violation("one worker in a slot",
                    fmt::format("worker {} beside worker {}", worker.value, other.value));
}

void Invariants::leaves(WorkerId worker, StepId step) {
  left_.insert(worker);
  if (worlds_.empty() || !worlds_.rbegin()->second.contains(worker)) return;
  left_at_ = std::max(left_at_, step.value);
}

void Invariants::enters(WorkerId worker, Generation generation, StepId step) {
  entered_[generation].insert(worker);
  if (only_leavers_ && step.value < left_at_)
    throw Violation("a step of a worker that leaves counts",
                    fmt::format("worker {} begins from step {}, another one has left after {}",
                                worker.value, step.value, left_at_));
}

void Invariants::answered(WorkerId worker, Generation up_to, StepId committed) {
  answered_[worker] = up_to;
  const auto at = stands_.find(worker);
  if (at != stands_.end() && at->second.step != committed.value)
    throw Violation("an answer is true", fmt::format("worker {} says {}, is at {}", worker.value,
                                                     committed.value, at->second.step));
}

void Invariants::transferred(Generation generation, const std::vector<Model>& holders) {
  for (const Model& model : holders)
    if (model.progress.step != holders.front().progress.step ||
        model.digest != holders.front().digest)
      throw Violation("holders hold the same",
                      fmt::format("world {}: steps {} and {}", generation.value,
                                  model.progress.step, holders.front().progress.step));
}

void Invariants::received(WorkerId worker, StepId before, StepId after) {
  if (after < before)
    throw Violation("state never goes back", fmt::format("worker {} from step {} to {}",
                                                         worker.value, before.value, after.value));
  stands_[worker] = {after.value, Generation()};
}

void Invariants::saved(std::int64_t number, Generation generation, const Model& model) {
  const SavedAs part{generation, model.progress.step, model.digest};
  const SavedAs& first = saves_.emplace(number, part).first->second;
  if (part != first)
    throw Violation(
        "a save is one state",
        fmt::format("save {}: parts of step {} in world {} and of step {} in world {}", number,
                    first.step, first.generation.value, part.step, generation.value));
}

void Invariants::started_fresh(WorkerId worker, Generation generation) {
  // An unreachable worker may enter an old world by itself; no other worker is in that world.
  const bool trained = std::ranges::any_of(
      lineage_, [&](const auto& e) { return e.first > 0 && e.second.generation < generation; });
  if (trained)
    throw Violation("never fresh weights again",
                    fmt::format("worker {} in world {} after {} steps", worker.value,
                                generation.value, lineage_.rbegin()->first));
}

void Invariants::controller_says(const job::JobAction& action, bool stopping) {
  if (stopping && (std::holds_alternative<job::StartWorker>(action) ||
                   std::holds_alternative<job::StartAgent>(action)))
    throw Violation("a job that ends begins nothing", "a process is started");
  if (const auto* record = std::get_if<job::Record>(&action)) {
    const bool begins = stopping && record->event.name == "change_started";
    for (const auto& [key, value] : record->event.fields) {
      if (begins && key == "planned" && value == job::report::Value(true))
        throw Violation("a job that ends begins nothing", "a planned change");
      if (key == "reason" && std::holds_alternative<std::string>(value) &&
          std::get<std::string>(value).empty())
        throw Violation("every decision has a reason", record->event.name);
    }
  }
  if (const auto* deliver = std::get_if<job::Deliver>(&action)) {
    if (std::holds_alternative<wire::Dismiss>(deliver->message))
      for (const auto& [host, workers] : deliver->to)
        dismissed_.insert(workers.begin(), workers.end());
    if (const auto* prepare = std::get_if<wire::Prepare>(&deliver->message))
      prepared(prepare->world);
  }
}

void Invariants::woken_again(int times) {
  if (times > 3) throw Violation("no busy waiting", fmt::format("{} ticks in no time", times));
}

void Invariants::state_lost(std::optional<WorkerId> holder, bool whole_soon) {
  constexpr const char* rule = "state is lost only with its last holder";
  if (holder) throw Violation(rule, fmt::format("worker {} has it", holder->value));
  if (whole_soon) throw Violation(rule, "a save of it is being made whole");
}

void Invariants::check_lineage(const Model& final) const {
  std::uint64_t digest = 1;
  worker::core::Progress at;
  for (std::int64_t step = 1; step <= final.progress.step; ++step) {
    const auto found = lineage_.find(step);
    if (found == lineage_.end())
      throw Violation("each sample exactly once", fmt::format("nobody committed step {}", step));
    const Committed& c = found->second;
    const bool new_call =
        c.before.train_call == at.train_call + 1 && c.before.epoch == 0 && c.range.first == 0;
    if (new_call && (at.train_call == 0 || at.epoch == epochs_)) at = c.before;
    if (c.before.epoch != at.epoch || c.range.first != at.cursor)
      throw Violation("each sample exactly once",
                      fmt::format("step {} takes epoch {} from {}, expected epoch {} from {}", step,
                                  c.before.epoch, c.range.first, at.epoch, at.cursor));
    if (c.range.count() < 1 || c.range.last > samples_)
      throw Violation(
          "each sample exactly once",
          fmt::format("step {} takes {} to {} of {}", step, c.range.first, c.range.last, samples_));
    digest = updated(digest, c.before, c.range);
    at.cursor = c.range.last == samples_ ? 0 : c.range.last;
    at.epoch += c.range.last == samples_;
    const auto ended = epochs_ended_.find(step);
    if (at.cursor == 0 && (ended == epochs_ended_.end() || ended->second < c.generation))
      throw Violation(
          "every epoch has its end",
          fmt::format("no on_epoch on rank 0 after step {} of world {}", step, c.generation.value));
  }
  if (digest != final.digest)
    throw Violation("each sample exactly once", "the final weights come from other steps");
}

// The members of the newest world that all of them have entered, or of the newest one at all.
bool Invariants::all_have_left() const {
  if (worlds_.empty()) return !left_.empty();
  auto newest = worlds_.rbegin();
  const auto whole = std::find_if(newest, worlds_.rend(), [&](const auto& world) {
    const auto found = entered_.find(world.first);
    return found != entered_.end() && found->second == world.second;
  });
  if (whole != worlds_.rend()) newest = whole;
  return std::ranges::includes(left_, newest->second);
}

void Invariants::finished(int exit_code, const std::string& words, bool interrupted,
                          bool somebody_exited, const std::vector<Model>& final_models) {
  namespace code = elasticrun::exit_code;
  const std::set<int> known{
      code::ok, code::below_minimum, code::budget_spent, code::nothing_started, 1, 121, 137};
  const std::set<int> stopped{code::stopped_saved, 130, 143};
  const bool unreadable = exit_code == code::usage && words.find("no save") != words.npos;
  if (!known.contains(exit_code) && !(interrupted && stopped.contains(exit_code)) && !unreadable)
    throw Violation("documented exit codes", fmt::format("{} ({})", exit_code, words));
  if (exit_code != code::ok && words.empty())
    throw Violation("the last words tell why", std::to_string(exit_code));
  for (const Model& model : final_models) check_lineage(model);
  if (exit_code != code::ok || somebody_exited) return;
  const bool trained = std::ranges::any_of(final_models, [&](const Model& model) {
    return model.progress.train_call == train_calls_ && model.progress.epoch == epochs_;
  });
  if (!trained && !all_have_left())
    throw Violation("success means trained", "exit code 0, and nobody has trained");
}

void Invariants::stopped(int exit_code, std::size_t whole_saves) {
  if (exit_code == elasticrun::exit_code::stopped_saved && whole_saves == 0)
    throw Violation("75 means that the next job goes on", "there is no whole save");
}

void Invariants::after_finish(std::size_t actions) {
  if (actions > 0) throw Violation("a job ends once", fmt::format("{} actions after it", actions));
}

void Invariants::after_the_end(std::size_t processes_left) {
  if (processes_left > 0)
    throw Violation("nothing is left behind", fmt::format("{} processes", processes_left));
}

}  // namespace elasticrun::simulate::faults
