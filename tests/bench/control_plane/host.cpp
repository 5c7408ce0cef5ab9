#include "tests/bench/control_plane/host.hpp"

#include <csignal>
#include <utility>

#include "base/check.hpp"
#include "wire/codec.hpp"
#include "wire/frame.hpp"

namespace elasticrun::bench {
namespace {

constexpr Duration fork_time = std::chrono::milliseconds(2);
constexpr Duration dying_time = std::chrono::milliseconds(1);
constexpr Duration good_bye_time = std::chrono::milliseconds(1);  // until the goodbye is sent

}  // namespace

Training::Handlers handlers_of_training(
    const std::map<WorkerId, std::shared_ptr<StubWorker>>& workers) {
  const auto tell = [&workers](WorkerId id, const auto& what) {
    const auto worker = workers.find(id);
    if (worker != workers.end()) what(*worker->second);
  };
  return {.entered =
              [tell](WorkerId id, const wire::Entered& message) {
                tell(id, [&](StubWorker& worker) { worker.entered(message); });
              },
          .committed =
              [tell](WorkerId id, const wire::Committed& message) {
                tell(id, [&](StubWorker& worker) { worker.send(message); });
              },
          .broken =
              [tell](WorkerId id, const wire::Broken& message) {
                tell(id, [&](StubWorker& worker) { worker.broken(message); });
              },
          .done =
              [tell](WorkerId id, const wire::Done& message) {
                tell(id, [&](StubWorker& worker) { worker.send(message); });
              }};
}

StubHost::StubHost(Cluster& cluster, Uplink uplink)
    : cluster_(cluster),
      uplink_(std::move(uplink)),
      began_(cluster.queue.now()),
      core_(cluster.limits, began_) {}

void StubHost::later(Duration delay, std::function<void()> what) {
  cluster_.queue.after(delay, [self = shared_from_this(), what = std::move(what)] {
    if (self->alive_) what();
  });
}

void StubHost::relay(WorkerId to, std::string_view message) {
  std::vector<WorkerId> workers{to};
  if (to == wire::several_workers) {
    auto several = wire::read_for_several(message);
    ER_CHECK(several.has_value());
    workers = std::move(several->workers);
    message = several->message;
  }
  for (const WorkerId one : workers) {
    const auto worker = workers_.find(one);
    if (worker != workers_.end()) worker->second->receive(cluster_.messages.read(message));
  }
}

void StubHost::receive(WorkerId worker, std::string_view payload) {
  if (worker != WorkerId{}) return relay(worker, payload);
  const auto order = wire::decode<wire::agent::ToAgent>(payload);
  ER_CHECK(order.has_value(), "the controller sent what no agent can read");
  std::visit([this](const auto& o) { take(o); }, *order);
}

void StubHost::feed(const launcher::agent::AgentEvent& event) {
  for (const auto& action : core_.step(event, cluster_.queue.now()))
    std::visit([this](const auto& a) { act(a); }, action);
  if (alive_) arm();
}

// At most one entry in the queue at a time, because each heartbeat moves the deadline.
void StubHost::arm() {
  const Time at = core_.wake_at();
  if (at >= armed_) return;
  armed_ = at;
  cluster_.queue.at(at, [self = shared_from_this(), at] {
    if (!self->alive_ || self->armed_ != at) return;
    self->armed_ = never;
    self->feed(launcher::agent::Tick{});
  });
}

void StubHost::act(const launcher::agent::Spawn& action) {
  const WorkerId id = action.order.worker;
  later(fork_time, [this, id] {
    const auto exited = [this, id](int code, int signal) {
      cluster_.workers.erase(id);
      later(dying_time, [this, id, code, signal] {
        workers_.erase(id);
        feed(launcher::agent::ProcessExited{id, code, signal});
      });
    };
    const auto worker = std::make_shared<StubWorker>(
        cluster_.queue, cluster_.training, id, began_,
        StubWorker::Handlers{[this, id](const wire::FromWorker& message) {
                               uplink_.send(id, wire::encode(message));
                             },
                             exited});
    workers_[id] = cluster_.workers[id] = worker;
    worker->begin();
    feed(launcher::agent::ProcessStarted{id, static_cast<std::int32_t>(100'000 + id.value)});
  });
}

void StubHost::end_worker(WorkerId worker, int signal) {
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return;
  later(dying_time, [process = found->second, signal] { process->die(0, signal); });
}

void StubHost::act(const launcher::agent::Signal& action) {
  end_worker(action.worker, action.signal);
}
void StubHost::act(const launcher::agent::KillTree& action) { end_worker(action.worker, SIGKILL); }

void StubHost::act(const launcher::agent::Report& action) {
  if (const auto* const heartbeat = std::get_if<wire::agent::Heartbeat>(&action.message))
    return uplink_.send_heartbeat(*heartbeat);
  uplink_.send(WorkerId{}, wire::encode(action.message));
}

// The driver sends a goodbye as the last message of the agent.
void StubHost::act(const launcher::agent::EndAgent& action) {
  uplink_.send(WorkerId{},
               wire::encode(wire::agent::FromAgent(wire::agent::Goodbye{action.reason})));
  later(good_bye_time, [this] { die(); });
}

void StubHost::die() {
  alive_ = false;
  for (const auto& [id, worker] : std::exchange(workers_, {})) {
    cluster_.workers.erase(id);
    worker->die(0, SIGKILL);
  }
}

}  // namespace elasticrun::bench
