// See workers.hpp.
#include "job/core/workers/workers.hpp"

#include <algorithm>

namespace elasticrun::job::workers {

WorkerId Workers::order(SlotId slot, Time ready_by) {
  last_ = last_.next();
  rows_[last_] = Worker{.slot = slot};
  ++counts_[static_cast<std::size_t>(WorkerState::ordered)];
  by_slot_.emplace(slot, last_);
  by_host_[slot.host].insert(last_);
  set_deadline(last_, ready_by);
  return last_;
}

void Workers::enter(Worker& worker, WorkerState state) {
  --counts_[static_cast<std::size_t>(worker.state)];
  ++counts_[static_cast<std::size_t>(state)];
  worker.state = state;
}

void Workers::turn(WorkerId id, WorkerTurn turn) {
  const auto row = rows_.find(id);
  if (row != rows_.end()) enter(row->second, next_in(worker_transitions, row->second.state, turn));
}

void Workers::ready(WorkerId id, Time now) {
  const auto row = rows_.find(id);
  if (row == rows_.end()) return;
  if (row->second.starts()) set_deadline(id, never);
  row->second.ready_since = std::min(row->second.ready_since, now);
  turn(id, WorkerTurn::joined);
}

bool Workers::give_up(WorkerId id, const std::string& trouble) {
  const auto row = rows_.find(id);
  if (row == rows_.end() || !row->second.trouble.empty()) return false;
  row->second.trouble = trouble;
  turn(id, WorkerTurn::given_up);
  return true;
}

bool Workers::dies(WorkerId id, const std::string& how) {
  const auto row = rows_.find(id);
  if (row == rows_.end() || row->second.is(WorkerState::dying)) return false;
  row->second.trouble = how;
  row->second.rank.reset();
  turn(id, WorkerTurn::dies);
  return true;
}

void Workers::set_deadline(WorkerId id, Time at) {
  const auto row = rows_.find(id);
  if (row == rows_.end()) return;
  deadlines_.erase({row->second.deadline, id});
  row->second.deadline = at;
  if (at != never) deadlines_.emplace(at, id);
}

void Workers::set_rank(WorkerId id, std::optional<std::int32_t> rank) {
  const auto row = rows_.find(id);
  if (row != rows_.end()) row->second.rank = rank;
}

void Workers::leaves(WorkerId id, bool in_call) {
  const auto row = rows_.find(id);
  if (row == rows_.end() || row->second.departed() || row->second.doomed()) return;
  row->second.left_in_call = in_call;
  turn(id, WorkerTurn::leaves);
  set_deadline(id, never);
}

bool Workers::some_left() const {
  return std::ranges::any_of(rows_,
                             [](const auto& row) { return row.second.is(WorkerState::left); });
}

void Workers::frees_job(WorkerId id) {
  const auto row = rows_.find(id);
  if (row != rows_.end()) row->second.freed_job = true;
}

std::vector<WorkerId> Workers::without_job() const {
  std::vector<WorkerId> ids;
  for (const auto& [id, worker] : rows_)
    if (worker.freed_job) ids.push_back(id);
  return ids;
}

void Workers::clear_ranks() {
  for (auto& [id, worker] : rows_) worker.rank.reset();
}

void Workers::erase(WorkerId id) {
  const auto row = rows_.find(id);
  if (row == rows_.end()) return;
  set_deadline(id, never);
  enter(row->second, WorkerState::gone);
  const SlotId slot = row->second.slot;
  by_slot_.erase(slot);
  const auto host = by_host_.find(slot.host);
  host->second.erase(id);
  if (host->second.empty()) by_host_.erase(host);
  rows_.erase(row);
}

void Workers::clear() {
  while (!rows_.empty()) erase(rows_.begin()->first);
}

void Workers::stood_still(Duration time) {
  deadlines_.clear();
  for (auto& [id, worker] : rows_) {
    if (worker.deadline == never) continue;
    worker.deadline += time;
    deadlines_.emplace(worker.deadline, id);
  }
}

const Worker* Workers::find(WorkerId id) const {
  const auto row = rows_.find(id);
  return row == rows_.end() ? nullptr : &row->second;
}

std::optional<WorkerId> Workers::in(SlotId slot) const {
  const auto found = by_slot_.find(slot);
  return found == by_slot_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<WorkerId> Workers::on(HostId host) const {
  const auto found = by_host_.find(host);
  if (found == by_host_.end()) return {};
  std::vector<WorkerId> there(found->second.begin(), found->second.end());
  std::ranges::stable_partition(there,
                                [&](WorkerId id) { return !find(id)->is(WorkerState::dying); });
  return there;
}

bool Workers::any_starting() const {
  if (count(WorkerState::ordered) + count(WorkerState::running) > 0) return true;
  return count(WorkerState::fenced) > 0 && std::ranges::any_of(rows_, [](const auto& row) {
           return row.second.is(WorkerState::fenced) && !row.second.was_ready();
         });
}

std::optional<WorkerId> Workers::due(Time now) {
  if (now < wake_at() || wake_at() == never) return std::nullopt;
  const WorkerId worker = deadlines_.begin()->second;
  set_deadline(worker, never);
  return worker;
}

std::vector<WorkerId> Workers::stuck_on(HostId host) const {
  std::vector<WorkerId> stuck;
  for (const auto& [id, its_host] : stuck_)
    if (its_host == host) stuck.push_back(id);
  return stuck;
}

bool Workers::runs_on(WorkerId id, HostId host) const {
  if (const Worker* worker = find(id)) return worker->slot.host == host;
  const auto stuck = stuck_.find(id);
  return stuck != stuck_.end() && stuck->second == host;
}

}  // namespace elasticrun::job::workers
