// An agent's core in tests: events at given times, and the actions that follow as text.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <variant>

#include "launcher/agent/agent_core.hpp"

namespace elasticrun::launcher::agent {

using namespace std::chrono_literals;

inline std::string text(const wire::agent::WorkerStarted& m) {
  return fmt::format("started {}", m.worker.value);
}
inline std::string text(const wire::agent::StartFailed& m) {
  return fmt::format("failed {} {}", m.worker.value, m.code);
}
inline std::string text(const wire::agent::WorkerExited& m) {
  return fmt::format("exited {} {}/{}", m.worker.value, m.code, m.signal);
}
inline std::string text(const wire::agent::WorkerDies& m) {
  return fmt::format("dies {} {}/{}", m.worker.value, m.code, m.signal);
}
std::string text(const auto&) { return "other"; }  // of no interest here
inline std::string text(const wire::agent::StopAsked& m) {
  return fmt::format("asked {}{}", m.signal, m.of_job ? " of job" : "");
}
inline std::string text(const wire::agent::Heartbeat& m) {
  return fmt::format("heartbeat {}", m.term.value);
}
inline std::string text(const Spawn& a) { return fmt::format("spawn {}", a.order.worker.value); }
inline std::string text(const Signal& a) {
  return fmt::format("signal {} {}", a.worker.value, a.signal);
}
inline std::string text(const KillTree& a) { return fmt::format("kill {}", a.worker.value); }
inline std::string text(const CallOff& a) { return fmt::format("call off {}", a.worker.value); }
inline std::string text(const Report& a) {
  return std::visit([](const auto& m) { return text(m); }, a.message);
}
inline std::string text(const EndAgent& a) {
  return fmt::format("end {}{}", a.exit_code, a.in_silence ? " in silence" : "");
}

// An agent with a lease of 10 s, 4 s of orphan grace, and a heartbeat so rare that it never comes.
struct Host {
  explicit Host(Duration heartbeat = 100s, SignalMeans means = SignalMeans::host_ends,
                Duration standstill = 0s)
      : core({Term{5}, 10s, heartbeat, 4s, standstill, means}, Time{}) {}

  std::string at(Duration t, const AgentEvent& event) {
    std::string out;
    for (const AgentAction& action : core.step(event, Time{} + t))
      out += (out.empty() ? "" : ", ") + std::visit([](const auto& a) { return text(a); }, action);
    return out;
  }
  Duration wake() const { return core.wake_at() - Time{}; }
  // Starts a worker at second 0.
  void runs(std::uint32_t id) {
    CHECK(at(0s, start(id)) == fmt::format("spawn {}", id));
    CHECK(at(0s, ProcessStarted{WorkerId{id}, 100}) == fmt::format("started {}", id));
  }
  static wire::agent::StartWorker start(std::uint32_t id) {
    return {WorkerId{id}, 0, {"./train"}, {}, ""};
  }
  static wire::agent::StopWorker stop(std::uint32_t id, Duration grace, int signal = 15) {
    return {WorkerId{id}, signal, grace.count()};
  }

  AgentCore core;
};

}  // namespace elasticrun::launcher::agent
