// Writes what the cores ask of their drivers, in the notation of notation.hpp.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "job/report/event.hpp"
#include "tests/fakes/notation.hpp"

namespace elasticrun::fakes {
namespace {

std::string numbers(const std::vector<WorkerId>& workers) {
  std::vector<std::uint32_t> values;
  for (const WorkerId worker : workers) values.push_back(worker.value);
  return fmt::format("{}", fmt::join(values, " "));
}

using Lines = std::vector<std::string>;

Lines lines_of(std::string line) { return {std::move(line)}; }
Lines lines_of(Lines lines) { return lines; }

void add_lines(Lines& lines, const std::vector<WorkerId>& workers, const wire::ToWorker& message) {
  for (const WorkerId to : workers)
    lines.push_back(fmt::format("to {}: {}", to.value, to_text(message)));
}

// Writes an event without its unknown, empty and false fields, so that it is short enough to read.
// tests/unit/job/tables_test.cpp checks the JSON form of events.
struct ValueWriter {
  std::string operator()(bool value) const { return value ? "yes" : ""; }
  std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const {
    return std::isfinite(value) ? fmt::format("{:.6g}", value) : "";
  }
  std::string operator()(const std::string& value) const {
    return value.find_first_of(" ,") == value.npos ? value : fmt::format("'{}'", value);
  }
  template <class T>
  std::string operator()(const std::vector<T>& values) const {
    return fmt::format("{}", fmt::join(values, ","));
  }
};

std::string event_line(const job::report::Event& event) {
  std::string line = "event " + event.name;
  for (const auto& [key, value] : event.fields)
    if (const std::string text = std::visit(ValueWriter(), value); !text.empty())
      line += fmt::format(" {}={}", key, text);
  return line;
}

struct MembershipWriter {
  Lines operator()(const rendezvous::ToMembers& a) const {
    Lines lines;
    add_lines(lines, a.to, a.message);
    return lines;
  }
  std::string operator()(const rendezvous::Fence& a) const {
    return fmt::format("fence {}: {}", a.worker.value, a.reason);
  }
  std::string operator()(const rendezvous::LeftOut& a) const {
    return fmt::format("leave out {}: {}", a.worker.value, a.reason);
  }
  std::string operator()(const rendezvous::BecameReady& a) const {
    return fmt::format("ready {}", a.worker.value);
  }
  std::string operator()(const rendezvous::WorldFormed& a) const {
    std::vector<WorkerId> members;
    for (const auto& member : a.world.members) members.push_back(member.worker);
    const std::string idle =
        a.idle_ns < 0 ? "" : fmt::format(" idle {}", elasticrun::to_text(Duration(a.idle_ns)));
    return fmt::format("formed g{} of {} {} from step {}{}: {}", a.world.generation.value,
                       numbers(members), a.planned ? "planned" : "forced", a.step.value, idle,
                       a.world.reason);
  }
  std::string operator()(const rendezvous::PlanWanted& a) const {
    return fmt::format("plan of g{} wanted", a.generation.value);
  }
  std::string operator()(const rendezvous::ChangeEnded& a) const {
    return a.how == rendezvous::ChangeEnded::How::done
               ? fmt::format("change {} done", a.id.value)
               : fmt::format("change {} dropped: {}", a.id.value, a.reason);
  }
  std::string operator()(const rendezvous::WorldCommitted& a) const {
    return fmt::format("committed g{} step {}", a.generation.value, a.step.value);
  }
  std::string operator()(const rendezvous::Dismissed& a) const {
    return "dismissed " + numbers(a.workers);
  }
  std::string operator()(const rendezvous::Trained& a) const {
    return fmt::format("trained call {}", a.call);
  }
  std::string operator()(const rendezvous::WorkerLeft& a) const {
    return fmt::format("left {}: {}", a.worker.value, a.reason);
  }
  std::string operator()(const rendezvous::WorldBroken& a) const {
    return fmt::format("broken g{}: {}", a.generation.value, a.reason);
  }
  std::string operator()(const rendezvous::BelowMinimum& a) const {
    return fmt::format("below minimum: {} of {}", a.have, a.need);
  }
  std::string operator()(const rendezvous::StateLost& a) const {
    return fmt::format("state {}: {}", a.all_left ? "left" : "lost", a.reason);
  }
};

struct MemberWriter {
  std::string operator()(const worker::core::Send& a) const { return "send " + to_text(a.message); }
  std::string operator()(const worker::core::FormGroup& a) const {
    return fmt::format("form g{} rank {} of {}", a.spec.generation.value, a.spec.rank, a.spec.size);
  }
  std::string operator()(const worker::core::ConnectGroup& a) const {
    return fmt::format("connect g{} {}", a.generation.value, fmt::join(a.addresses, " "));
  }
  std::string operator()(const worker::core::AbortGroups& a) const {
    if (a.up_to == Generation(~0ULL)) return "abort all groups";
    return fmt::format("abort groups to g{}", a.up_to.value);
  }
  std::string operator()(const worker::core::DropGroup& a) const {
    return fmt::format("drop g{}", a.generation.value);
  }
  std::string operator()(const worker::core::CloseGroups& a) const {
    return fmt::format("close groups below g{}", a.below.value);
  }
};

struct JobWriter {
  std::string operator()(const job::StartAgent& a) const {
    return fmt::format("start agent {}", a.host.value);
  }
  std::string operator()(const job::KillAgent& a) const {
    return fmt::format("kill agent {}", a.host.value);
  }
  std::string operator()(const job::StartWorker& a) const {
    return fmt::format("host {}: start {} slot {} rank {} of {}{}{}", a.slot.host.value,
                       a.worker.value, a.slot.index, a.place.rank.value, a.place.size,
                       a.restarts > 0 ? fmt::format(" restarts {}", a.restarts) : "",
                       a.after > Duration::zero() ? " after " + elasticrun::to_text(a.after) : "");
  }
  std::string operator()(const job::Order& a) const {
    return fmt::format("host {}: {}", a.host.value, to_text(a.order));
  }
  Lines operator()(const job::Deliver& a) const {
    Lines lines;
    for (const auto& [host, workers] : a.to) add_lines(lines, workers, a.message);
    return lines;
  }
  std::string operator()(const job::Record& a) const { return event_line(a.event); }
  std::string operator()(const job::Log& a) const {
    return (a.level == job::report::LogLevel::error ? "error: " : "say: ") + a.text;
  }
  std::string operator()(const job::Ranked& a) const {
    return fmt::format("rank of {} is {}", a.worker.value, a.rank);
  }
  std::string operator()(const job::Ask& a) const {
    return "ask " + a.question.substr(0, a.question.find('\n'));
  }
  std::string operator()(const job::GiveBack& a) const {
    std::string hosts;
    for (const HostId host : a.hosts)
      hosts += fmt::format(" {}{}", host.value, a.with_agent.contains(host) ? "*" : "");
    return "give back" + hosts;
  }
  std::string operator()(const job::SealSave& a) const {
    return fmt::format("seal save {}: step {}, {} files", a.number, a.manifest.step,
                       a.manifest.files.size());
  }
  std::string operator()(const job::DropSave& a) const {
    return fmt::format("drop save {}", a.number);
  }
  std::string operator()(const job::Finish& a) const {
    const char* const why = !a.time_was_up   ? ""
                            : a.if_preempted ? " as the time was up if preempted"
                                             : " as the time was up";
    return fmt::format("finish {}{}{}: {}", a.exit_code, a.trained ? " trained" : "", why,
                       a.last_words);
  }
};

}  // namespace

Lines to_lines(const rendezvous::Action& action) {
  return std::visit([](const auto& a) { return lines_of(MembershipWriter{}(a)); }, action);
}
std::string to_text(const worker::core::MemberAction& action) {
  return std::visit(MemberWriter{}, action);
}
Lines to_lines(const job::JobAction& action) {
  return std::visit([](const auto& a) { return lines_of(JobWriter{}(a)); }, action);
}

}  // namespace elasticrun::fakes
