// The states of hosts and workers, and the deadlines, places and counts kept with them.
#include <doctest/doctest.h>

#include <set>
#include <utility>

#include "job/core/course/ending.hpp"
#include "job/core/course/saves.hpp"
#include "job/core/hosts/hosts.hpp"
#include "job/core/workers/workers.hpp"

namespace elasticrun::job {
namespace {

using namespace std::chrono_literals;

constexpr SlotId slot(int index) { return {HostId(3), index}; }
constexpr Time at(Duration time) { return Time{} + time; }

template <class States, class Turns, class Transitions>
void check_tables(const States& states, const Turns& turns, const Transitions& transitions) {
  for (std::size_t i = 0; i < states.size(); ++i)
    CHECK(static_cast<std::size_t>(states[i].value) == i);
  for (std::size_t i = 0; i < turns.size(); ++i)
    CHECK(static_cast<std::size_t>(turns[i].value) == i);
  std::set<std::pair<int, int>> seen;
  std::set<int> reached{0};
  for (const auto& row : transitions) {
    CHECK(seen.emplace(static_cast<int>(row.from), static_cast<int>(row.turn)).second);
    CHECK(row.from != row.to);
    reached.insert(static_cast<int>(row.to));
  }
  CHECK(reached.size() == states.size());
}

TEST_CASE("tables are in the order of their enums, unambiguous, and reach every state") {
  check_tables(course::phases, course::phase_events, course::phase_transitions);
  check_tables(hosts::host_states, hosts::host_turns, hosts::host_transitions);
  check_tables(workers::worker_states, workers::worker_turns, workers::worker_transitions);
  check_tables(course::save_states, course::save_turns, course::save_transitions);
  for (std::size_t i = 0; i < course::causes.size(); ++i)
    CHECK(static_cast<std::size_t>(course::causes[i].cause) == i);
}

TEST_CASE("every worker can end from any state, and no transition leads back") {
  for (const auto& state : workers::worker_states) {
    CAPTURE(state.name);
    CHECK(next_in(workers::worker_transitions, state.value, workers::WorkerTurn::ended) ==
          workers::WorkerState::gone);
  }
  for (const auto& row : workers::worker_transitions) CHECK(row.from < row.to);
}

TEST_CASE("a worker has one deadline; the earliest is due first, and each is due once") {
  workers::Workers workers;
  const WorkerId first = workers.order(slot(0), at(9s));
  const WorkerId second = workers.order(slot(1), at(5s));
  CHECK(workers.wake_at() == at(5s));
  CHECK_FALSE(workers.due(at(4s)));
  workers.set_deadline(first, at(3s));
  CHECK(workers.due(at(6s)) == first);
  CHECK(workers.due(at(6s)) == second);
  CHECK_FALSE(workers.due(at(6s)));
  CHECK(workers.wake_at() == never);
  workers.set_deadline(second, at(7s));
  workers.stood_still(2s);
  CHECK(workers.wake_at() == at(9s));
  workers.erase(second);
  CHECK(workers.wake_at() == never);
}

TEST_CASE("a ready worker has no deadline any more, and a worker is given up only once") {
  workers::Workers workers;
  const WorkerId worker = workers.order(slot(0), at(9s));
  CHECK(workers.any_starting());
  workers.turn(worker, workers::WorkerTurn::started);
  CHECK(workers.find(worker)->is(workers::WorkerState::running));
  workers.ready(worker, at(1s));
  CHECK_FALSE(workers.any_starting());
  CHECK(workers.wake_at() == never);
  CHECK(workers.give_up(worker, "it hangs"));
  CHECK_FALSE(workers.give_up(worker, "it is silent"));
  CHECK(workers.find(worker)->trouble == "it hangs");
  CHECK_FALSE(workers.find(worker)->expected());
  // A worker that was never ready counts as starting until it is gone.
  const WorkerId other = workers.order(slot(1), at(9s));
  CHECK(workers.give_up(other, "it does not begin"));
  CHECK(workers.any_starting());
  workers.erase(other);
  CHECK_FALSE(workers.any_starting());
}

TEST_CASE("a leaver that does not answer ends like one that was told to stop") {
  workers::Workers workers;
  const WorkerId worker = workers.order(slot(0), never);
  workers.ready(worker, at(1s));
  workers.turn(worker, workers::WorkerTurn::dismissed);
  CHECK(workers.give_up(worker, "it does not answer"));
  CHECK(workers.find(worker)->is(workers::WorkerState::stopping));
  CHECK(workers.find(worker)->expected());
}

TEST_CASE("workers are found by slot and by host, including those stuck in the kernel") {
  workers::Workers workers;
  const WorkerId here = workers.order(slot(0), never);
  const WorkerId there = workers.order({HostId(4), 0}, never);
  CHECK(workers.in(slot(0)) == here);
  CHECK_FALSE(workers.in(slot(1)));
  CHECK(workers.on(HostId(3)) == std::vector{here});
  CHECK(workers.runs_on(there, HostId(4)));
  CHECK_FALSE(workers.runs_on(there, HostId(3)));
  workers.erase(there);
  workers.leave_stuck(there, HostId(4));
  CHECK(workers.runs_on(there, HostId(4)));
  CHECK(workers.stuck_on(HostId(4)) == std::vector{there});
  CHECK(workers.erase_stuck(there));
  CHECK_FALSE(workers.erase_stuck(there));
}

TEST_CASE("a host is asked once, and again after it has failed") {
  hosts::Hosts hosts;
  const HostId host(1);
  CHECK(hosts.ask(host));
  CHECK_FALSE(hosts.ask(host));
  CHECK_FALSE(hosts.failed(host));
  hosts.came(host, at(10s));
  CHECK(hosts.up(host));
  CHECK(hosts.leased_until(host) == at(10s));
  hosts.went(host);
  CHECK(hosts.failed(host));
  CHECK_FALSE(hosts.live(host));
  CHECK(hosts.none_live());
  CHECK(hosts.ask(host));
  CHECK(hosts.live(host));
  CHECK(hosts.failed(host));
  CHECK(hosts.failed() == 1);
  hosts.came(host, at(20s));
  CHECK(hosts.failed() == 0);
  CHECK(hosts.in(hosts::HostState::up) == std::vector{host});
}

TEST_CASE("the first cause of an end counts") {
  course::Ending ending;
  ending.begin(course::Cause::too_many_failures, 0, "failures", at(1s));
  ending.begin(course::Cause::worker_failed, 7, "worker", at(2s));
  CHECK(ending.exit_code() == exit_code::budget_spent);
  CHECK(ending.words() == "failures");
  CHECK(ending.deadline() == at(1s));
  course::Ending own;
  own.begin(course::Cause::worker_failed, 7, "worker", at(2s));
  CHECK(own.exit_code() == 7);
}

TEST_CASE("patience runs while a job starts or is short of workers") {
  course::Ending ending;
  CHECK(ending.patience_ends(10s) == never);
  ending.short_since(at(3s));
  ending.short_since(at(5s));
  CHECK(ending.patience_ends(10s) == at(13s));
  ending.happen(course::PhaseEvent::world_formed);
  CHECK(ending.patience_ends(10s) == never);
  ending.enough();
  CHECK_FALSE(ending.short_of_workers());
}

}  // namespace
}  // namespace elasticrun::job
