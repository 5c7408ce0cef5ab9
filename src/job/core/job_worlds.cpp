// What membership reports: how worlds form, break and end (job.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <limits>
#include <map>

#include "base/exit_code.hpp"
#include "base/text.hpp"
#include "job/core/job.hpp"

namespace elasticrun::job {

void Job::tell(const rendezvous::Event& event, Time now) {
  const bool first = !membership_.ever_formed();
  for (auto& action : membership_.step(event, now))
    std::visit([&](auto& a) { on(a, now); }, action);
  if (first && membership_.ever_formed()) concerns_staff(now);  // spares start from now on
}

// Groups the receivers by host. They are in the order of their ranks, so mostly host by host.
void Job::on(rendezvous::ToMembers& message, Time) {
  Deliver deliver{{}, std::move(message.message)};
  std::map<HostId, std::size_t> places;
  for (const WorkerId id : message.to) {
    const workers::Worker* const worker = workers_.find(id);
    if (!worker) continue;
    const HostId host = worker->slot.host;
    const std::size_t place = places.try_emplace(host, deliver.to.size()).first->second;
    if (place == deliver.to.size()) deliver.to.push_back({host, {}});
    deliver.to[place].workers.push_back(id);
  }
  if (!deliver.to.empty()) out_.add(std::move(deliver));
}

void Job::on(rendezvous::Fence& fact, Time now) { fence(fact.worker, fact.reason, now); }

void Job::on(rendezvous::LeftOut& left, Time now) {
  const workers::Worker* worker = workers_.find(left.worker);
  if (!worker || ending_.ending()) return;
  const Duration pause = slots_.leave_out(worker->slot, now);
  out_.record("left_out", {{"worker", static_cast<std::int64_t>(left.worker.value)},
                           {"host", name_of(worker->slot.host)},
                           {"pause_s", seconds(pause)},
                           {"reason", left.reason}});
  out_.log(report::LogLevel::error, fmt::format("{} is left out for {}: {}", name_of(left.worker),
                                                to_text(pause), left.reason));
  concerns_staff(now);
}

// The first world waits for all of its workers.
void Job::on(rendezvous::BecameReady&, Time now) {
  if (membership_.ever_formed() || !workers_.any_starting()) concerns_staff(now);
}

void Job::on(rendezvous::PlanWanted& wanted, Time now) {
  tell(rendezvous::PlanMade{wanted.generation,
                            sizing_.plan(wanted.members, with_types(wanted.members),
                                         needs_keeper())},
       now);
}

// Where a host has no type, its name stands for one: workers of one host are alike.
std::vector<autoscaler::Member> Job::with_types(const std::vector<wire::Member>& members) const {
  std::vector<autoscaler::Member> typed;
  for (const wire::Member& member : members) {
    const std::string type = hosts_.type(member.host);
    typed.push_back({member.worker, type.empty() ? name_of(member.host) : type});
  }
  return typed;
}

void Job::on(rendezvous::WorldFormed& formed, Time now) {
  ending_.happen(course::PhaseEvent::world_formed);
  ending_.stood_still("");
  ending_.enough();
  using enum course::Summary::Change;
  summary_.world(static_cast<int>(formed.world.members.size()), formed.step, formed.world.reason,
                 formed.replanned ? replanned
                 : formed.planned ? planned
                                  : forced);
  workers_.clear_ranks();
  std::int32_t rank = 0;
  for (const auto& member : formed.world.members) {
    workers_.set_rank(member.worker, rank);
    out_.add(Ranked{member.worker, rank++});
  }
  if (const auto* const save = requests_.saves.kept().newest();
      save && save->path == formed.world.restore) {
    sizing_.restored(save->manifest);
    requests_.saves.kept().forget_failed_readings();
  }
  sizing_.world_formed(formed, with_types(formed.world.members), now);
  progress(formed.step, now);
  failures_.world_formed(formed.step);
  drop_save(requests_.saves.world_ended());
  requests_.saves.times().world_formed(now);
  requests_.saves.steps_resume();
  record_world(formed);
  say_world(formed, now);
  concerns_staff(now);
}

void Job::record_world(const rendezvous::WorldFormed& formed) {
  constexpr double not_known = std::numeric_limits<double>::quiet_NaN();
  const auto& plan = formed.world.plan;
  std::vector<std::string> hosts;
  std::set<HostId> named;
  for (const auto& member : formed.world.members)
    if (named.insert(member.host).second) hosts.push_back(name_of(member.host));
  std::vector<std::pair<std::string, report::Value>> fields{
      {"generation", static_cast<std::int64_t>(formed.world.generation.value)},
      {"size", static_cast<std::int64_t>(formed.world.members.size())},
      {"hosts", hosts},
      {"reason", formed.world.reason},
      {"planned", formed.planned},
      {"step", formed.step.value},
      {"idle_ms", formed.idle_ns < 0 ? not_known : static_cast<double>(formed.idle_ns) / 1e6},
      {"prepare_ms", milliseconds(formed.prepare)},
      {"state_bytes", static_cast<std::int64_t>(formed.transfer_bytes)},
      {"state_ms", static_cast<double>(formed.transfer_ns) / 1e6},
      {"global_batch", plan.global_batch},
      {"lr_factor", plan.adascale ? not_known : plan.lr_factor}};
  if (!formed.formation.empty()) fields.emplace_back("group", formed.formation);
  if (!plan.weights.empty())
    fields.emplace_back("shares",
                        std::vector<std::int64_t>(plan.weights.begin(), plan.weights.end()));
  out_.record("world_formed", std::move(fields));
}

void Job::say_world(const rendezvous::WorldFormed& formed, Time now) {
  // A reason that was logged with the decision, and an unchanged backend, are not repeated.
  const std::string why = summary_.was_told(formed.world.reason) ? "" : ": " + formed.world.reason;
  const std::string backend = formed.formation.substr(0, formed.formation.find(' '));
  const std::string over = summary_.other_backend(backend) ? " over " + backend : "";
  // There is no idle time before the first step.
  const std::string idle =
      formed.idle_ns < 0
          ? ""
          : fmt::format(", idle {:.0f} ms", static_cast<double>(formed.idle_ns) / 1e6);
  const std::int64_t batch = formed.world.plan.global_batch;  // 0: the program decides
  if (formed.rejected > 0)
    out_.log(report::LogLevel::detail,
             fmt::format("workers refused {} connections that could not prove to be of this job",
                         formed.rejected));
  const std::string samples = batch > 0 ? fmt::format(", global batch {}", batch) : "";
  const std::string& restore = formed.world.restore;
  const std::string save = restore.empty() ? "" : fmt::format(" ({})", restore);
  tell_all_troubles(now);  // the causes come first
  const auto size = static_cast<std::int64_t>(formed.world.members.size());
  if (batch > 0 && batch < size)
    out_.log(
        report::LogLevel::error,
        fmt::format("the global batch of {} is smaller than the world: {} of {} workers compute "
                    "nothing",
                    batch, size - batch, size));
  out_.log(report::LogLevel::info,
           fmt::format("world {}: {}{}{}, from step {}{}{}{}", summary_.worlds(),
                       counted(formed.world.members.size(), "worker"), over, samples,
                       formed.step.value, save, idle, why));
}

void Job::progress(StepId step, Time now) {
  if (step <= summary_.newest()) return;
  const bool poison = failures_.poison().suspected();
  summary_.committed(step);
  requests_.saves.times().stepped(now);
  failures_.committed(step);
  sizing_.committed(step);
  if (poison) concerns_staff(now);  // perhaps no member must keep the state now
}

void Job::on(rendezvous::ChangeEnded& ended, Time now) {
  if (!requests_.changes.ended(ended.id, ended.how, now)) return;
  if (ended.how != rendezvous::ChangeEnded::How::done)
    out_.log(report::LogLevel::info, "change dropped: " + ended.reason);
  concerns_staff(now);
}

void Job::on(rendezvous::WorldCommitted& committed, Time now) {
  progress(committed.step, now);
  failures_.world_stepped();
  concerns_staff(now);
}

void Job::on(rendezvous::Dismissed& dismissed, Time now) {
  for (const WorkerId id : dismissed.workers) {
    const workers::Worker* worker = workers_.find(id);
    if (!worker) continue;
    // One that has not joined gets no message. At the end of a job all are stopped in any case.
    if (worker->was_ready() || worker->departed() || ending_.ending())
      dismiss(id, now);
    else
      stop_worker(id, SIGTERM, spec_.deadlines.grace, now);
    if (slots_.quarantined(worker->slot, now))
      out_.record("evicted", {{"worker", static_cast<std::int64_t>(id.value)},
                              {"host", name_of(worker->slot.host)},
                              {"reason", "slower than the others"}});
  }
  concerns_staff(now);
}

void Job::on(rendezvous::Trained&, Time now) {
  ending_.happen(course::PhaseEvent::trained);
  summary_.trained();
  out_.log(report::LogLevel::detail, "trained: " + summary_.steps_made());
  requests_.saves.steps_pause(summary_.newest(), false, now);
  ask_for_save(now);
}

void Job::on(rendezvous::WorkerLeft& left, Time now) {
  const workers::Worker* worker = workers_.find(left.worker);
  if (!worker) return;
  out_.log(report::LogLevel::info, fmt::format("{} left: {}", name_of(left.worker), left.reason));
  workers_.leaves(left.worker, left.in_call);
  slots_.retire(worker->slot);
  failures_.member_left();
  concerns_staff(now);
}

void Job::on(rendezvous::WorldBroken& broken, Time now) {
  ending_.happen(course::PhaseEvent::world_broken);
  drop_save(requests_.saves.world_ended());
  out_.record("change_started", {{"generation", static_cast<std::int64_t>(broken.generation.value)},
                                 {"planned", false},
                                 {"reason", broken.reason}});
  concerns_staff(now);
}

void Job::on(rendezvous::BelowMinimum& below, Time now) {
  if (ending_.ending()) return;
  if (below.have == 0 && failures_.left_one_by_one()) return all_left(now);
  if (below.have == 0 && ended_by_mistake("", now)) return;
  ending_.happen(course::PhaseEvent::below_minimum);
  ending_.short_since(now);
  const std::string patience = to_text(spec_.deadlines.minimum_timeout);
  out_.log(report::LogLevel::error,
           needs_keeper() && below.have >= minimum()
               ? fmt::format("one worker is left and keeps the state: its step is repeated with "
                             "another one, which is waited for up to {}",
                             patience)
               : fmt::format("{} of at least {} workers are left; waiting up to {} for more",
                             below.have, below.need, patience));
  if (membership_.idle_holder()) requests_.saves.steps_pause(summary_.newest(), true, now);
  concerns_staff(now);
}

void Job::on(rendezvous::StateLost& lost, Time now) {
  if (lost.all_left || failures_.left_one_by_one()) return all_left(now);
  if (ending_.is(course::Phase::trained) || ending_.ending()) return;
  course::Saves& saves = requests_.saves;
  if (saves.lost()) return;  // logged before
  const std::string& why = ending_.standstill().empty() ? lost.reason : ending_.standstill();
  if (!saves.wait_for_last(why)) {
    if (!ended_by_mistake(": state lost", now)) state_lost(why, "", now);
    return;
  }
  out_.log(
      report::LogLevel::error,
      fmt::format("{}, and no worker is left that holds the state: waiting for the save of it that "
                  "is being made whole",
                  why));
}

// The members left by themselves, one after the other: training is over. Workers that wait for a
// place would begin again from a save, so they leave as well.
void Job::all_left(Time now) {
  if (ending_.is(course::Phase::trained)) return;
  ending_.happen(course::PhaseEvent::trained);
  summary_.trained();
  tell(rendezvous::Dissolve{"all members left by themselves"}, now);
}

void Job::state_lost(const std::string& why, const std::string& save_trouble, Time now) {
  const std::string save =
      save_trouble.empty() ? "" : "; the save of it did not become whole: " + save_trouble;
  const std::string words =
      fmt::format("state lost: {}, and no worker is left that holds the state{}", why, save);
  if (!workers_.some_left()) return end(course::Cause::state_lost, words, now);
  // Those hold what they have learned, and may be writing it: the job waits for their end.
  out_.log(report::LogLevel::error, words + "; waiting for the workers that have left");
  ending_.keep({exit_code::below_minimum, words, false});
  ending_.happen(course::PhaseEvent::trained);
  tell(rendezvous::Dissolve{"the state is lost"}, now);
}

}  // namespace elasticrun::job
