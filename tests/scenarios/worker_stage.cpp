// One worker's Member on a stage: the controller's messages and the training thread's calls go in.
#include <fmt/format.h>

#include "tests/fakes/notation.hpp"
#include "tests/scenarios/stage.hpp"

namespace elasticrun::scenarios {
namespace {

class WorkerStage final : public Stage {
 public:
  explicit WorkerStage(WorkerId self) : member_(self) {}

  Lines play(Words& words, Time now) override {
    now_ = now;
    Lines lines = act(words);
    for (const auto& action : member_.take_outbox()) lines.push_back(fakes::to_text(action));
    if (const std::string task = name(member_.task()); task != task_) {
      lines.push_back("task: " + task);
      task_ = task;
    }
    return lines;
  }

 private:
  static std::string name(worker::core::Task task) {
    constexpr const char* names[] = {"wait", "enter", "step", "save", "released", "evicted"};
    return names[static_cast<int>(task)];
  }
  static Lines answer(bool yes) { return {yes ? "yes" : "no"}; }

  // "by rank 2 hung-up: connection reset"; without "by" the error names no rank.
  static worker::collective::GroupBroken broken(Words& words) {
    std::vector<worker::collective::PeerTrouble> troubles;
    while (words.accept("by")) {
      words.expect("rank");
      const int rank = static_cast<int>(words.number());
      troubles.push_back({rank, words.accept("hung-up"), "its address"});
    }
    return worker::collective::GroupBroken(words.reason(), troubles);
  }

  Lines act(Words& words) {
    if (words.accept("lease")) {  // "lease 10s": until second 10 of the scenario
      const Time ends = scene_begin + words.duration();
      return member_.receive(wire::Lease{ends.time_since_epoch().count()}), Lines{};
    }
    if (words.accept("hears")) {
      const wire::ToWorker message = fakes::to_worker(words);
      if (std::holds_alternative<wire::Abort>(message))
        member_.held_up(std::exchange(held_up_, {}));
      return member_.receive(message), Lines{};
    }
    if (words.accept("ready")) {
      wire::TrainSpec train{.call = words.number()};
      if (words.accept("batch")) train.batch = words.number();
      return member_.ready(train), Lines{};
    }
    if (words.accept("waits")) {  // "waits in g1 for rank 1"
      words.expect("in");
      const auto generation = words.generation();
      words.expect("for");
      words.expect("rank");
      const int rank = static_cast<int>(words.number());
      return held_up_.push_back({generation, {rank}, {}}), Lines{};
    }
    if (words.accept("loses")) {  // "loses in g2 to rank 1": what the worker sends there is lost
      words.expect("in");
      const auto generation = words.generation();
      words.expect("to");
      words.expect("rank");
      const int rank = static_cast<int>(words.number());
      held_up_.push_back({generation, {}, {{rank, false, "it does not arrive"}}});
      return Lines{};
    }
    if (words.accept("begins")) {
      words.expect("transfer");
      return member_.begin_transfer(), answer(member_.may_receive_in_place());
    }
    if (words.accept("entered")) return member_.entered({.step = words.step()}), Lines{};
    if (words.accept("done")) return member_.done(words.number()) ? Lines{} : Lines{"refused"};
    if (words.accept("outside")) return member_.outside(), Lines{};
    if (words.accept("broken")) return member_.broken(broken(words)), Lines{};
    if (words.accept("leaves")) return member_.leave(words.reason()), Lines{};
    if (words.accept("fails")) return member_.fail(words.reason()), Lines{};
    return group(words);
  }
  Lines group(Words& words) {
    if (words.accept("published")) {
      const auto generation = words.generation();
      return member_.published(generation, words.word()), Lines{};
    }
    if (words.accept("formed")) return member_.formed(words.generation(), {}), Lines{};
    if (words.accept("unformed")) {
      const auto generation = words.generation();
      return member_.form_failed(generation, broken(words)), Lines{};
    }
    return step(words);
  }
  Lines step(Words& words) {
    if (words.accept("may-swap?")) return answer(member_.may_swap());
    if (words.accept("begin-compute?")) return answer(member_.begin_compute(now_));
    if (words.accept("vote?")) return answer(member_.votes().change == 1);
    if (words.accept("commit?"))
      return answer(member_.commit() != worker::core::Member::After::aborted);
    if (words.accept("takes")) {
      words.expect("save?");
      const auto order = member_.take_save();
      return {order ? fmt::format("save {} as rank {} of {}", order->save.number, order->rank.value,
                                  order->size)
                    : "no"};
    }
    if (words.accept("wrote")) {
      words.expect("save");
      return member_.saved({.number = words.number()}), Lines{};
    }
    if (!words.accept("may-apply?")) words.fail("no event of a worker");
    words.expect("votes");
    worker::core::Votes sums{static_cast<double>(words.number())};
    if (words.accept("saves")) {  // of so many members, for that save
      const auto voters = static_cast<double>(words.number());
      words.expect("for");
      const double digit = worker::core::Votes::digit_of(words.number());
      sums.save = voters * digit;
      sums.save_square = voters * digit * digit;
    }
    (void)member_.votes();
    return answer(member_.may_apply(sums, now_));
  }

  worker::core::Member member_;
  std::vector<worker::collective::HeldUp> held_up_;  // what its groups answer at the next Abort
  std::string task_ = "wait";
  Time now_{};
};

}  // namespace

std::unique_ptr<Stage> worker_stage(Words& setting) {
  setting.expect("worker");
  return std::make_unique<WorkerStage>(setting.worker());
}

}  // namespace elasticrun::scenarios
