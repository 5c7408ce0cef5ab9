// Membership on a stage: messages and local events in, messages and facts out.
#include <algorithm>
#include <iterator>

#include "tests/fakes/notation.hpp"
#include "tests/scenarios/stage.hpp"

namespace elasticrun::scenarios {
namespace {

class MembershipStage final : public Stage {
 public:
  explicit MembershipStage(rendezvous::MembershipOptions options)
      : membership_(std::move(options)) {}

  Lines play(Words& words, Time now) override {
    if (words.at_number()) return says(words, now);
    const std::string what = words.word();
    if (what == "change") return tell(change(words), now);
    if (what == "want") return tell(wanted(words), now);
    if (what == "tick") return tell(rendezvous::Tick{}, now);
    if (what == "stuck") return tell(stuck(words), now);
    if (what == "dissolve") return tell(rendezvous::Dissolve{words.reason()}, now);
    if (what == "restore") return tell(rendezvous::Restore{words.word()}, now);
    if (what == "hold") return tell(rendezvous::Restore{}, now);
    if (what == "up") {
      const WorkerId worker = words.worker();
      return tell(rendezvous::WorkerUp{worker, HostId(0), static_cast<int>(worker.value)}, now);
    }
    if (what != "gone") words.fail("no event of membership");
    const WorkerId worker = words.worker();
    const Time dead_by = words.accept("at-latest") ? scene_begin + words.duration() : Time{};
    return tell(rendezvous::WorkerGone{worker, words.reason(), dead_by}, now);
  }

 private:
  // "1 2 say prepared g1" is one message of each worker, one after the other.
  Lines says(Words& words, Time now) {
    Lines lines;
    const auto speakers = words.workers();
    words.expect(speakers.size() == 1 ? "says" : "say");
    const wire::FromWorker message = fakes::from_worker(words);
    for (const WorkerId speaker : speakers)
      for (std::string& line : tell(rendezvous::WorkerMessage{speaker, message}, now))
        lines.push_back(std::move(line));
    return lines;
  }
  static rendezvous::Change change(Words& words) {
    rendezvous::Change change{.id = ChangeId(static_cast<std::uint64_t>(words.number()))};
    if (words.accept("add")) change.add = words.workers();
    if (words.accept("remove")) change.remove = words.workers();
    change.reason = words.reason();
    return change;
  }
  // "want 3 reserves 4 5"
  static rendezvous::Wanted wanted(Words& words) {
    rendezvous::Wanted wanted{.size = static_cast<int>(words.number())};
    if (words.accept("minimum")) wanted.minimum = static_cast<int>(words.number());
    if (words.accept("reserves")) wanted.reserves = words.workers();
    return wanted;
  }
  // "stuck 3 g2: one reduction took longer than ..."
  static rendezvous::Stuck stuck(Words& words) {
    const WorkerId worker = words.worker();
    const Generation generation = words.generation();
    return {worker, generation, words.reason()};
  }
  static rendezvous::PlanMade plan(const rendezvous::PlanWanted& wanted) {
    const auto size = static_cast<std::int64_t>(wanted.members.size());
    return {wanted.generation, {.global_batch = 8 * size}};
  }
  Lines tell(const rendezvous::Event& event, Time now) {
    Lines lines;
    for (const auto& action : membership_.step(event, now)) {
      if (const auto* wanted = std::get_if<rendezvous::PlanWanted>(&action))
        for (std::string& line : tell(plan(*wanted), now)) lines.push_back(std::move(line));
      else
        std::ranges::move(fakes::to_lines(action), std::back_inserter(lines));
    }
    if (membership_.wake_at() <= now) lines.push_back("BUG: it wants to wake in the past");
    return lines;
  }

  rendezvous::Membership membership_;
};

}  // namespace

std::unique_ptr<Stage> membership_stage(Words& setting) {
  rendezvous::MembershipOptions options;
  if (setting.accept("minimum")) options.minimum = static_cast<int>(setting.number());
  options.abort_timeout = std::chrono::seconds(5);
  options.prepare_timeout = std::chrono::seconds(30);
  return std::make_unique<MembershipStage>(std::move(options));
}

}  // namespace elasticrun::scenarios
