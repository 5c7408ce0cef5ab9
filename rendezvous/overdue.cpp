// The part of membership.hpp that acts when a deadline has passed.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "rendezvous/membership.hpp"

namespace elasticrun::rendezvous {

void Membership::on(const Tick&, Time now) {
  if (now < wake_at()) return;
  if (forming_ && forming_->going) return transfer_overdue(now);
  if (forming_) return preparation_overdue(now);
  if (aborting_->waiting.empty()) return maybe_finish_abort(now);
  if (std::exchange(aborting_->ends_step, false)) {  // they cannot: another member is gone, too
    aborting_->deadline = now + options_.abort_timeout;
    return send({aborting_->waiting.begin(), aborting_->waiting.end()},
                wire::Abort{aborting_->up_to, abort_reason_});
  }
  give_up(std::vector(aborting_->waiting.begin(), aborting_->waiting.end()),
          fmt::format("did not answer within {}", to_text(options_.abort_timeout)), now);
}

// A worker that has not published hangs and keeps others from connecting: it is given up.
// A worker that others cannot connect to is known from their complaints (connect_share), or from
// their Answer, which says whom they wait for.
void Membership::preparation_overdue(Time now) {
  const auto& members = forming_->world.members;
  std::vector<WorkerId> silent;
  for (std::size_t rank = 0; rank < members.size(); ++rank)
    if (!forming_->exchange.has(Rank(static_cast<std::int32_t>(rank))))
      silent.push_back(members[rank].worker);
  const Duration time = std::min<Duration>(now - forming_->since, options_.prepare_timeout);
  const std::string what = fmt::format("was not prepared within {}", to_text(time));
  if (!forming_->at_once) {
    // The present world is well: only newcomers are given up or left out.
    const auto newcomers_end =
        std::ranges::stable_partition(silent, [&](WorkerId w) { return !is_member(w); }).begin();
    if (silent.empty())
      for (const WorkerId worker : newcomers_of(*forming_))
        if (forming_->unprepared.contains(worker)) leave_out(worker, "it " + what);
    cancel(silent.empty() ? "a worker " + what
                          : fmt::format("worker {} {}", silent[0].value, what));
    return give_up({silent.begin(), newcomers_end}, what, now);
  }
  if (!silent.empty() && silent.size() < members.size()) return give_up(silent, what, now);
  count_failure(now);
  // Where all are silent, an Abort asks them, and the workers that do not answer hang. Where that
  // has failed too often, all are given up.
  if (!silent.empty() && failed_too_often(now)) return give_up(silent, what, now);
  start_abort("a worker " + what, now);
  aborting_->stalled = true;
  maybe_finish_abort(now);
}

void Membership::transfer_overdue(Time now) {
  const std::vector<WorkerId> stuck = transfer_.stuck();
  if (!stuck.empty()) return give_up(stuck, "did not come back from a group that was aborted", now);
  count_failure(now);
  start_abort(
      fmt::format("nothing of the state has moved for {}", to_text(options_.transfer_timeout)),
      now);
  aborting_->stalled = true;
  maybe_finish_abort(now);
}

void Membership::give_up(const std::vector<WorkerId>& workers, const std::string& why, Time now) {
  for (const WorkerId worker : workers) {
    outbox_.push_back(Fence{worker, why});
    on(WorkerGone{worker, why, never}, now);
  }
}

}  // namespace elasticrun::rendezvous
