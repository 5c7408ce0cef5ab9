// How workers end, and how the job does (supervisor.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/error.hpp"
#include "job/supervisor.hpp"

namespace elasticrun::job {

void Supervisor::worker_ended(WorkerId id, const WorkerEnd& end, Time now) {
  const auto& [code, signal, how, dead_by, with_host] = end;
  const Worker* found = pool_.find(id);
  if (!found) {
    // Membership may wait for it, where nobody else of its world has answered.
    if (unkillable_.erase(id) > 0) tell(rendezvous::WorkerGone{id, how, dead_by}, now);
    return;
  }
  const Worker worker = *found;
  const std::string name = name_of(id);
  const bool training = membership_.is_training(id);
  const bool in_step = training && membership_.may_step(id);
  const bool clean = code == 0 && signal == 0;
  const bool expected = worker.expected || ending();
  const std::string why = worker.trouble.empty() ? how : worker.trouble;
  record("worker_exited", {{"worker", static_cast<std::int64_t>(id.value)},
                           {"host", wiring_.host_name(worker.slot.host)},
                           {"code", static_cast<std::int64_t>(code)},
                           {"signal", static_cast<std::int64_t>(signal)},
                           {"expected", expected || (clean && !training)},
                           {"reason", why}});
  pool_.erase(id);
  const bool member = ranks_.erase(id) > 0;
  liveness_.worker_gone(id);
  const int shell_code = signal != 0 ? exit_code::signal_base + signal : code;
  const bool given_up = !worker.trouble.empty();  // by us: no word of the program
  const bool own_doing = !given_up && !with_host;
  if (member && !expected) ends_.add({name, why, code, signal, own_doing});
  if (!expected) {
    if (!library_ || phase_ == Phase::trained || (!membership_.ever_formed() && own_doing)) {
      // Nothing to go on from, or nothing left to go on with: as under torchrun.
      // Who was given up before the last world formed has no part in how the job ends.
      const bool past = phase_ == Phase::trained && given_up && !member;
      if (!clean && !past) this->end(shell_code, fmt::format("{} {}", name, why), now);
      pool_.retire(worker.slot);  // it has done what it had to do
    } else if (clean && !training && worker.ready) {
      pool_.retire(worker.slot);
    } else {
      const std::string text =
          clean && training ? "exited with 0 in mid-training without leave()" : why;
      const Tone tone = with_host ? Tone::detail : Tone::error;
      failure(worker.slot, member, fmt::format("{} {}", name, text), tone, now);
      // A kill is not the program's doing, of whoever it was: the kernel's for memory, a person's.
      if (own_doing && in_step && signal != SIGKILL)
        step_killed(fmt::format("{} {}", name, text), now);
      // The next one there would be waited for as long; the others begin without it.
      if (given_up && !worker.ready) pool_.slot_failed(worker.slot, now);
    }
  }
  tell(rendezvous::WorkerGone{id, why, dead_by}, now);
}

void Supervisor::step_killed(const std::string& who, Time now) {
  poison_.died(who, membership_.stepping());
  if (poison_.certain()) end(exit_code::budget_spent, poison_.words(work_.between_epochs()), now);
}

// A host that dies takes many members with it, and a kernel short of memory kills several: what one
// world loses is one failure, else large jobs would have a smaller budget than small ones.
void Supervisor::failure(SlotId slot, bool member, const std::string& what, Tone tone, Time now) {
  say(tone, what);
  pool_.slot_failed(slot, now);
  failed_ = true;
  if (member && std::exchange(counted_world_, true)) return;
  if (++failures_ <= max_restarts_) return;
  record("restart_refused", {{"failures", static_cast<std::int64_t>(failures_)}, {"reason", what}});
  end(exit_code::budget_spent,
      fmt::format(
          "{} failures without a new step between, more than --max-restarts {}; the last: {}",
          failures_, max_restarts_, what),
      now);
}

// Its slot is left out from now on, its host goes on. The worker there computes no more, and may
// hang for good instead of dying.
void Supervisor::hear(HostId host, const wire::GpuLost& lost, Time now) {
  const std::string name = wiring_.host_name(host);
  record("gpu_lost", {{"host", name},
                      {"slot", static_cast<std::int64_t>(lost.slot)},
                      {"gpu", lost.gpu},
                      {"xid", static_cast<std::int64_t>(lost.xid)},
                      {"reason", lost.reason}});
  say(Tone::error,
      fmt::format("{}: slot {} is left out: GPU {} {}", name, lost.slot, lost.gpu, lost.reason));
  pool_.drop({host, lost.slot});
  const auto id = pool_.worker_in({host, lost.slot});
  if (!id || ending()) return;
  rendezvous::Fence fence{*id, "lost its GPU"};
  on(fence, now);
  tell(rendezvous::WorkerGone{*id, "lost its GPU", never}, now);
}

void Supervisor::stop_worker(WorkerId id, std::int32_t signal, Duration grace, Time now) {
  Worker* const worker = pool_.find(id);
  if (!worker) return;
  worker->gone_by = std::min(worker->gone_by, now + grace + dying_time);
  out_.push_back(Order{worker->slot.host, wire::StopWorker{id, signal, grace.count()}});
}

void Supervisor::end(int code, std::string words, Time now) {
  if (ending()) return;
  exit_code_ = code;
  words_ = std::move(words);
  happen(Happening::stop);
  deadline_ = now + spec_.deadlines.grace + std::chrono::seconds(2);
  for (const auto& [id, worker] : pool_.workers()) {
    pool_.find(id)->expected = true;
    stop_worker(id, SIGTERM, spec_.deadlines.grace, now);
  }
}

// Nobody is left of the world but who has left it by itself, and all others made the same mistake:
// what those would do who took their place is known.
bool Supervisor::ended_by_mistake(const char* what, Time now) {
  const bool all = std::ranges::all_of(ranks_, [&](const auto& member) {
    const Worker* worker = pool_.find(member.first);
    return !worker || worker->expected;
  });
  const auto mistake = all ? ends_.mistake() : std::nullopt;
  if (mistake) end(mistake->exit_code, mistake->words + what, now);
  return mistake.has_value();
}

// Fewer than the minimum are waited for so long: from the start on, or after losses.
Time Supervisor::patience_ends() const {
  const bool waits = phase_ == Phase::starting || phase_ == Phase::short_of;
  return waits && short_since_ != never ? short_since_ + spec_.deadlines.minimum_timeout : never;
}

void Supervisor::tell_troubles(Time now, bool all) {
  for (std::string& line : troubles_.tell(now, all)) say(Tone::error, std::move(line));
}

// A driver or a disk that does not answer keeps a process from dying. Nobody can do more about it
// from here, and the job does not wait for it.
void Supervisor::leave_unkillable(Time now) {
  std::vector<WorkerId> stuck;
  for (const auto& [id, worker] : pool_.workers())
    if (worker.gone_by <= now) stuck.push_back(id);
  for (const WorkerId id : stuck) {
    say(Tone::error, name_of(id) +
                         " was killed and is still there: it hangs in the kernel of its " +
                         "host, and the job goes on without waiting for it");
    const HostId host = pool_.find(id)->slot.host;
    worker_ended(id, {.signal = SIGKILL, .how = "cannot be killed", .dead_by = never}, now);
    unkillable_.emplace(id, host);
  }
}

// What is due by time, and what follows when the last worker or the last agent has gone.
void Supervisor::wind_up(Time now) {
  leave_unkillable(now);
  for (const auto& [id, worker] : pool_.workers())
    if (worker.stop_at <= now) {
      pool_.find(id)->stop_at = never;
      stop_worker(id, SIGTERM, spec_.deadlines.grace, now);
    }
  if (now >= patience_ends())
    end(exit_code::below_minimum,
        fmt::format("fewer than {} workers for {}", spec_.limits.min,
                    to_text(spec_.deadlines.minimum_timeout)),
        now);
  // Who was given up is killed already, and its end is a failure: it may have had more to do.
  if (phase_ == Phase::trained && membership_.members().empty())
    for (const auto& [id, worker] : pool_.workers())
      if (!worker.expected && worker.trouble.empty()) {
        pool_.find(id)->expected = true;
        stop_worker(id, SIGTERM, spec_.deadlines.grace, now);
      }
  if (phase_ == Phase::stopping && now >= deadline_) {
    // An agent that cannot kill its workers, or is silent: its host is given up.
    for (const auto& [host, state] : hosts_) out_.push_back(KillAgent{host});
    while (!pool_.workers().empty()) pool_.erase(pool_.workers().begin()->first);
  }
  // Before the first workers were chosen there are none to wait for, but more may come.
  const bool all_started =
      ending() || phase_ == Phase::trained || (first_ && first_->empty() && !gathering_);
  const bool all_gone = all_started && pool_.workers().empty();
  const bool more_to_come = library_ && !pool_.all_retired();
  if (all_gone && phase_ == Phase::starting && pool_.slots().empty())
    wait_for_more(too_few(pool_.slots()), now);
  if (all_gone && library_ && !more_to_come && phase_ != Phase::short_of) happen(Happening::stop);
  if (all_gone && !(phase_ == Phase::starting && more_to_come) && phase_ < Phase::closing) {
    happen(Happening::workers_gone);
    if (phase_ == Phase::closing) close(now);
  }
  if (phase_ != Phase::closing) return;
  if (!hosts_.empty() && now >= deadline_) {
    for (const auto& [host, state] : hosts_) out_.push_back(KillAgent{host});
    hosts_.clear();
  }
  if (!hosts_.empty()) return;
  happen(Happening::agents_gone);
  tell_troubles(now, true);
  deadline_ = never;
  record("job_finished", {{"exit_code", static_cast<std::int64_t>(exit_code_)},
                          {"reason", words_.empty() ? std::string("all workers finished") : words_},
                          {"steps", std::max<std::int64_t>(newest_.value, 0)},
                          {"wall_s", seconds(now - began_)},
                          {"worker_s", worker_s_}});
  tell_story();
  out_.push_back(Finish{exit_code_, last_words(now)});
}

void Supervisor::close(Time now) {
  deadline_ = now + closing_time;
  for (const auto& [host, state] : hosts_) {
    if (state.up)
      out_.push_back(Order{host, wire::Shutdown{0}});
    else
      out_.push_back(KillAgent{host});
  }
  std::erase_if(hosts_, [](const auto& host) { return !host.second.up; });
}

// Each change of the world and why; a job that never changed needs no story.
void Supervisor::tell_story() {
  if (worlds_ < 2) return;
  say(Tone::info, "what was done, and why:");
  if (const auto left_out = worlds_ - static_cast<int>(story_.size()); left_out > 0)
    say(Tone::info, fmt::format("  ({} earlier worlds; --events FILE records all)", left_out));
  for (const Chapter& one : story_)
    say(Tone::info, fmt::format("  step {}: {} worker{}: {}", one.from.value, one.size,
                                one.size == 1 ? "" : "s", one.why));
  if (exit_code_ == exit_code::ok && !unsettled_ && !last_reason_.empty())
    say(Tone::info, "  at the end: " + last_reason_);
}

// As far as is known: exact when the workers have ended in good order.
std::string Supervisor::steps_made() const {
  const std::int64_t steps = std::max<std::int64_t>(newest_.value, 0);
  return fmt::format("{} step{}", steps, steps == 1 ? "" : "s");
}

// What happened, for the last line on the terminal; empty when there is nothing to tell.
std::string Supervisor::last_words(Time now) const {
  if (worlds_ == 0) return words_;
  std::string sizes = worlds_ > static_cast<int>(story_.size()) ? "..." : "";
  for (const Chapter& one : story_)
    sizes += fmt::format("{}{}", sizes.empty() ? "" : " ", one.size);
  std::string text =
      fmt::format("{} in {}, {:.0f} worker seconds; sizes {} ({} planned, {} forced)", steps_made(),
                  to_text(now - began_), worker_s_, sizes, planned_, forced_);
  return words_.empty() ? text : words_ + "; " + text;
}

}  // namespace elasticrun::job
