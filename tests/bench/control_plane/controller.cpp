#include "tests/bench/control_plane/controller.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "wire/codec.hpp"
#include "wire/limits.hpp"

namespace elasticrun::bench {
namespace {

constexpr Duration latency = std::chrono::microseconds(200);
const char* const job_id = "0123456789ab";

job::driver::StartOrders start_orders(const job::JobSpec& spec) {
  auto orders = job::driver::StartOrders::make(spec, job_id);
  ER_CHECK(orders.has_value());
  return std::move(*orders);
}

}  // namespace

using Part = Account::Part;

Controller::Controller(simulate::Queue& queue, Account& account, const job::JobSpec& spec,
                       Handlers handlers)
    : queue_(queue),
      account_(account),
      handlers_(std::move(handlers)),
      spec_(spec),
      keys_(job_id, net::Secret{}),
      start_orders_(start_orders(spec_)) {
  auto core = job::Job::make(spec_);
  ER_CHECK(core.has_value());
  core_ = std::move(*core);
}

// ---------------------------------------------------------------- what happens

job::SlotsChanged Controller::slots() {
  const launcher::hosts::Plan plan = roster_.plan();
  job::SlotsChanged changed;
  changed.slots_by_host = plan.slots_by_host;
  changed.source = "hosts.txt";
  for (const launcher::hosts::Slot& slot : plan.slots) {
    changed.slots.push_back({slot.host, slot.slot});
    changed.prices.push_back(slot.price);
  }
  return changed;
}

void Controller::give(const std::vector<launcher::hosts::Host>& hosts) {
  account_.now_in(Part::core);
  roster_.give(hosts);
  turn(roster_.take_met());
  turn(slots());
  end_turn();
}

void Controller::agent_up(HostId host) {
  account_.now_in(Part::core);
  links_.insert_or_assign(host, Link{wire::FrameReader(wire::frame_bytes_max),
                                     wire::ResendQueue(wire::control_queue_max)});
  wire::Hello hello;
  hello.host = host;
  hello.address = fmt::format("10.0.{}.{}", host.value >> 8 & 255, host.value & 255);
  hello.free_port = 40000;
  (void)roster_.up(host, hello);
  turn(job::HostUp{host});
  end_turn();
}

void Controller::agent_gone(HostId host, const std::string& reason) {
  if (finished_) return;
  account_.now_in(Part::core);
  links_.erase(host);
  (void)roster_.down(host);
  turn(job::HostDown{host, reason});
  end_turn();
}

void Controller::receive(HostId host, std::string_view bytes) {
  const auto link = links_.find(host);
  if (link == links_.end() || finished_) return;
  account_.received(bytes.size());
  account_.now_in(Part::decode);
  link->second.reader.feed(bytes);
  for (;;) {
    // A turn may close any link.
    const auto still = links_.find(host);
    if (still == links_.end() || finished_) break;
    const auto next = still->second.reader.next();
    ER_CHECK(next.has_value());
    if (!*next) break;
    still->second.received += !(*next)->passing;
    frame(host, **next);
    end_turn();
    account_.now_in(Part::decode);
  }
  account_.now_in(Part::outside);
}

void Controller::frame(HostId host, const wire::Frame& frame) {
  if (frame.worker == WorkerId{}) return report(host, frame.payload);
  auto message = wire::decode<wire::FromWorker>(frame.payload);
  ER_CHECK(message.has_value());
  turn(job::FromWorker{frame.worker, std::move(*message)});
}

void Controller::report(HostId host, std::string_view payload) {
  auto report = wire::decode<wire::agent::FromAgent>(payload);
  ER_CHECK(report.has_value());
  if (const auto* heartbeat = std::get_if<wire::agent::Heartbeat>(&*report))
    links_.at(host).unacknowledged.acknowledge(heartbeat->received);
  if (const auto* goodbye = std::get_if<wire::agent::Goodbye>(&*report))
    return queue_.after(Duration::zero(),
                        [this, host, reason = goodbye->reason] { agent_gone(host, reason); });
  turn(job::FromHost{host, std::move(*report)});
}

// ---------------------------------------------------------------- a turn

void Controller::turn(const job::JobEvent& event) {
  if (account_.part() != Part::core) account_.now_in(Part::core);
  std::vector<job::JobAction> actions = core_->step(event, queue_.now());
  wake_at_ = core_->wake_at(queue_.now());
  account_.now_in(Part::encode);
  for (auto& action : actions) std::visit([this](auto& a) { act(a); }, action);
}

void Controller::end_turn() {
  for (const HostId host : std::exchange(to_write_, {})) {
    const auto link = links_.find(host);
    if (link == links_.end()) continue;
    account_.sent(link->second.control.size());
    queue_.after(latency, [this, host, bytes = std::exchange(link->second.control, {})]() mutable {
      handlers_.send(host, std::move(bytes));
    });
  }
  arm();
  account_.now_in(Part::outside);
}

// At most one entry in the queue at a time, because the real controller has one timer.
void Controller::arm() {
  if (finished_ || wake_at_ >= armed_) return;
  armed_ = std::max(wake_at_, queue_.now());
  queue_.at(armed_, [this, at = armed_] {
    if (armed_ != at) return;
    armed_ = never;
    if (finished_) return;
    if (wake_at_ > queue_.now()) return arm();
    turn(job::Tick{});
    end_turn();
  });
}

void Controller::send(HostId host, WorkerId worker, std::string_view payload, bool passing) {
  const auto link = links_.find(host);
  if (link == links_.end()) return;
  if (!passing) link->second.unacknowledged.push(worker, std::string(payload));
  std::string& control = link->second.control;
  ER_CHECK(control.size() + payload.size() <= wire::control_queue_max,
           "the session of a host ends: more than control_queue_max waits for it");
  if (control.empty()) to_write_.push_back(host);
  wire::append_frame(control, worker, payload, passing);
}

void Controller::act(const job::StartAgent& action) { handlers_.start_agent(action.host); }

void Controller::act(const job::KillAgent& action) {
  links_.erase(action.host);
  handlers_.kill_agent(action.host);
}

void Controller::act(const job::StartWorker& action) {
  wire::agent::StartWorker order = start_orders_.order(action, roster_, false);
  send(action.slot.host, WorkerId{}, wire::encode(wire::agent::ToAgent(std::move(order))));
}

void Controller::act(const job::Order& action) {
  if (const auto* heartbeat = std::get_if<wire::agent::Heartbeat>(&action.order)) {
    const auto link = links_.find(action.host);
    if (link == links_.end()) return;
    wire::agent::Heartbeat own = *heartbeat;
    own.received = link->second.received;
    return send(action.host, WorkerId{}, wire::encode(wire::agent::ToAgent(own)), true);
  }
  send(action.host, WorkerId{}, wire::encode(wire::agent::ToAgent(action.order)));
}

void Controller::act(job::Deliver& action) {
  if (auto* prepare = std::get_if<wire::Prepare>(&action.message))
    prepare->secret = keys_.of_world(prepare->world.generation);
  const std::string message = wire::encode(action.message);
  for (const auto& [host, workers] : action.to)
    if (workers.size() == 1)
      send(host, workers.front(), message);
    else
      send(host, wire::several_workers, wire::for_several(workers, message));
}

void Controller::act(const job::Record& action) {
  (void)job::report::to_json(action.event, "2026-01-01T00:00:00.000Z", job_id);
}

void Controller::act(const job::Log& action) {
  if (action.level == job::report::LogLevel::error) last_error_ = action.text;
}

void Controller::act(const job::Finish& action) {
  finished_ = true;
  exit_code_ = action.exit_code;
  last_words_ = action.last_words;
}

}  // namespace elasticrun::bench
