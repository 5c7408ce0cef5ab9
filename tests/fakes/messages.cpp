// Writes and reads messages and orders in the notation of notation.hpp.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tests/fakes/notation.hpp"

namespace elasticrun::fakes {
namespace {

std::string because(const std::string& reason) { return reason.empty() ? "" : ": " + reason; }
std::string step(StepId at) { return at == no_state ? "none" : fmt::format("step {}", at.value); }
std::string batch(const BatchPlan& plan) {
  std::string text = fmt::format("batch {}", plan.global_batch);
  if (!plan.weights.empty()) text += fmt::format(" shares {}", fmt::join(plan.weights, ","));
  if (plan.keeper >= 0) text += fmt::format(" keeper {}", plan.keeper);
  if (plan.micro_batch != 0) text += fmt::format(" at most {} at once", plan.micro_batch);
  if (plan.lr_factor != 1) text += fmt::format(" lr x{:g}", plan.lr_factor);
  if (plan.noise_base > 0) text += fmt::format(" noise against {}", plan.noise_base);
  if (plan.adascale) text += " lr by it";
  return text;
}

// For each complaint: " about 3 hung-up".
std::string about(const std::vector<wire::Complaint>& complaints) {
  std::string text;
  for (const wire::Complaint& one : complaints)
    text += fmt::format(" about {}{}{}", one.about.value, one.hung_up ? " hung-up" : "",
                        one.waits ? " waits" : "");
  return text;
}

struct Writer {
  // A star marks a member that holds the state.
  std::string operator()(const wire::Prepare& m) const {
    std::vector<std::string> members;
    for (const auto& member : m.world.members)
      members.push_back(fmt::format("{}{}", member.worker.value, member.holds_state ? "*" : ""));
    return fmt::format("prepare g{} members {} {}{}", m.world.generation.value,
                       fmt::join(members, ","), batch(m.world.plan), because(m.world.reason)) +
           (m.world.restore.empty() ? "" : " from " + m.world.restore);
  }
  std::string operator()(const wire::Gathered& m) const {
    return fmt::format("gathered g{} {}", m.generation.value, fmt::join(m.values, " "));
  }
  std::string operator()(const wire::Go& m) const {
    return fmt::format("go g{}{}", m.generation.value, m.at_once ? " at-once" : "");
  }
  std::string operator()(const wire::Cancel& m) const {
    return fmt::format("cancel g{}", m.generation.value);
  }
  std::string operator()(const wire::Abort& m) const {
    return fmt::format("abort g{}{}", m.generation.value, because(m.reason));
  }
  std::string operator()(const wire::Save& m) const {
    return fmt::format("save {}{}{}", m.number, m.stop ? " stop" : "", m.alone ? " alone" : "");
  }
  std::string operator()(const wire::Release& m) const {
    return fmt::format("release call {}", m.call);
  }
  std::string operator()(const wire::Dismiss& m) const { return "dismiss" + because(m.reason); }
  std::string operator()(const wire::Lease& m) const {
    return fmt::format("lease {}s", m.ends_ns / 1'000'000'000);
  }

  std::string operator()(const wire::Join&) const { return "join"; }
  std::string operator()(const wire::Ready& m) const {
    return fmt::format("ready call {} batch {}", m.train.call, m.train.batch);
  }
  std::string operator()(const wire::Publish& m) const {
    return fmt::format("publish g{} {}", m.generation.value, m.value);
  }
  std::string operator()(const wire::Prepared& m) const {
    return fmt::format("prepared g{}", m.generation.value);
  }
  std::string operator()(const wire::PrepareFailed& m) const {
    return fmt::format("prepare-failed g{}{}{}", m.generation.value, about(m.complaints),
                       because(m.reason));
  }
  std::string operator()(const wire::Answer& m) const {
    return fmt::format("answer g{} {}{}", m.generation.value, step(m.committed),
                       about(m.complaints));
  }
  std::string operator()(const wire::Entered& m) const {
    return fmt::format("entered g{} {}{}", m.generation.value, step(m.step),
                       m.idle_ns < 0 ? "" : fmt::format(" idle {}ms", m.idle_ns / 1'000'000));
  }
  std::string operator()(const wire::Committed& m) const {
    return fmt::format("committed g{} {}", m.generation.value, step(m.step));
  }
  std::string operator()(const wire::Broken& m) const {
    return fmt::format("broken g{}{}{}", m.generation.value, about(m.complaints),
                       because(m.reason));
  }
  std::string operator()(const wire::Saved& m) const {
    return fmt::format("saved g{} {} save {} rank {} of {}{}", m.generation.value, step(m.step),
                       m.number, m.rank, m.size, because(m.error));
  }
  std::string operator()(const wire::Unreadable& m) const {
    return fmt::format("unreadable g{} {}{}{}", m.generation.value, m.save,
                       m.of_reader ? " by-reader" : "", because(m.reason));
  }
  std::string operator()(const wire::Sample& m) const {
    std::string text =
        fmt::format("sample g{} {} steps {} samples {} wall {}ms compute {}ms waiting {}ms in {}",
                    m.generation.value, step(m.step), m.steps, m.samples, m.wall_ns / 1'000'000,
                    m.compute_ns / 1'000'000, m.waiting_ns / 1'000'000, m.phase);
    if (m.transfer_bytes > 0) text += fmt::format(" moved {}", m.transfer_bytes);
    for (const Noise& noise : m.noise)
      text += fmt::format(" noise {:g} over {:g} from {} steps worth {:g}", noise.variance,
                          noise.square, noise.steps, noise.scale_invariant_steps);
    return text;
  }
  std::string operator()(const wire::StepSamples& m) const {
    return fmt::format("samples g{} epoch {} {}", m.generation.value, m.epoch,
                       fmt::join(m.by_rank, ","));
  }
  std::string operator()(const wire::Diverged& m) const {
    std::string text = fmt::format("diverged g{} {}", m.generation.value, step(m.step));
    for (const WorkerId worker : m.odd) text += fmt::format(" odd {}", worker.value);
    return text + (m.mixed ? " mixed" : "") + because(m.where);
  }
  std::string operator()(const wire::Done& m) const {
    return fmt::format("done call {} {}", m.call, step(m.step));
  }
  std::string operator()(const wire::Leave& m) const {
    return "leave" + (m.step == no_state ? "" : " " + step(m.step)) + because(m.reason);
  }

  std::string operator()(const wire::agent::StartWorker& m) const {
    return fmt::format("start {} slot {} {}", m.worker.value, m.slot, fmt::join(m.argv, " "));
  }
  std::string operator()(const wire::agent::StopWorker& m) const {
    return fmt::format("stop {} signal {} grace {}", m.worker.value, m.signal,
                       elasticrun::to_text(Duration(m.grace_ns)));
  }
  std::string operator()(const wire::agent::SignalWorker& m) const {
    return fmt::format("signal {} {}", m.worker.value, m.signal);
  }
  std::string operator()(const wire::agent::Heartbeat&) const { return "heartbeat"; }
  std::string operator()(const wire::agent::Shutdown& m) const {
    return fmt::format("shutdown grace {}", elasticrun::to_text(Duration(m.grace_ns)));
  }
  std::string operator()(const wire::agent::HoldOutput& m) const {
    return m.hold ? "hold output" : "go on with output";
  }
  std::string operator()(const wire::agent::BundlePart& m) const {
    return fmt::format("part of {}: {} bytes{}", m.file, m.bytes.value.size(),
                       m.last ? ", last" : "");
  }
};

wire::World world(Words& words) {
  wire::World world{.generation = words.generation()};
  words.expect("members");
  std::string list = words.word() + ",";
  for (std::size_t at = 0, comma; (comma = list.find(',', at)) != std::string::npos;
       at = comma + 1) {
    const std::string name = list.substr(at, comma - at);
    const auto id = static_cast<std::uint32_t>(std::stoul(name));
    world.members.push_back(
        {WorkerId(id), HostId(), static_cast<std::int32_t>(id), name.ends_with('*')});
  }
  words.expect("batch");
  world.plan.global_batch = words.number();
  world.reason = words.reason();
  return world;
}

std::vector<wire::Complaint> about(Words& words) {
  std::vector<wire::Complaint> complaints;
  while (words.accept("about")) {
    wire::Complaint one{.about = words.worker(), .reason = "no route to host"};
    one.hung_up = words.accept("hung-up");
    one.waits = words.accept("waits");
    complaints.push_back(one);
  }
  return complaints;
}

std::int64_t time(Words& words, std::string_view name) {
  words.expect(name);
  return words.duration().count();
}

// Reads what follows the first word of "noise 400 over 2 from 100 steps worth 150".
Noise noise(Words& words) {
  Noise m{.variance = static_cast<double>(words.number())};
  words.expect("over");
  m.square = static_cast<double>(words.number());
  words.expect("from");
  m.steps = words.number();
  words.expect("steps");
  words.expect("worth");
  m.scale_invariant_steps = static_cast<double>(words.number());
  return m;
}

wire::Sample sample(Words& words) {
  wire::Sample m{.generation = words.generation(), .step = words.step()};
  if (words.accept("steps")) {
    m.steps = words.number();
    words.expect("samples");
    m.samples = words.number();
    m.wall_ns = time(words, "wall");
    m.compute_ns = time(words, "compute");
  }
  if (words.accept("waiting")) m.waiting_ns = words.duration().count();
  words.expect("in");
  m.phase = words.word();
  if (words.accept("moved")) m.transfer_bytes = static_cast<std::uint64_t>(words.number());
  if (words.accept("noise")) m.noise = {noise(words)};
  return m;
}

}  // namespace

std::string to_text(const wire::ToWorker& message) { return std::visit(Writer{}, message); }
std::string to_text(const wire::FromWorker& message) { return std::visit(Writer{}, message); }
std::string to_text(const wire::agent::ToAgent& order) { return std::visit(Writer{}, order); }

wire::ToWorker to_worker(Words& words) {
  const std::string name = words.word();
  if (name == "prepare") return wire::Prepare{world(words)};
  if (name == "dismiss") return wire::Dismiss{words.reason()};
  if (name == "release") {
    words.expect("call");
    return wire::Release{words.number()};
  }
  if (name == "save") {
    wire::Save m{.number = words.number(), .folder = "/saves/draft"};
    m.stop = words.accept("stop");
    m.alone = words.accept("alone");
    return m;
  }
  const auto generation = words.generation();
  if (name == "gathered") {
    wire::Gathered m{generation, {}};
    while (!words.empty()) m.values.push_back(words.word());
    return m;
  }
  if (name == "go") return wire::Go{generation, words.accept("at-once")};
  if (name == "cancel") return wire::Cancel{generation};
  if (name == "abort") return wire::Abort{generation, words.reason()};
  words.fail("no message to a worker");
}

wire::FromWorker from_worker(Words& words) {
  const std::string name = words.word();
  if (name == "join") return wire::Join{};
  if (name == "leave") {
    wire::Leave leave;
    if (words.peek() == "step") leave.step = words.step();
    if (words.accept("collectives")) leave.collectives = words.number();
    leave.reason = words.reason();
    return leave;
  }
  if (name == "sample") return sample(words);
  if (name == "ready" || name == "done") {
    words.expect("call");
    const std::int64_t call = words.number();
    if (name == "done") return wire::Done{call, words.step()};
    wire::Ready m{.train = {.call = call}};
    if (words.accept("batch")) m.train.batch = words.number();
    if (words.accept("samples")) m.train.samples = words.number();
    if (words.accept("epochs")) m.train.epochs = words.number();
    return m;
  }
  const auto generation = words.generation();
  if (name == "samples") {
    wire::StepSamples m{.generation = generation};
    words.expect("epoch");
    m.epoch = words.number();
    while (!words.empty()) m.by_rank.push_back(words.word());
    return m;
  }
  if (name == "diverged") {
    wire::Diverged m{.generation = generation, .step = words.step()};
    while (words.accept("odd"))
      m.odd.push_back(WorkerId(static_cast<std::uint32_t>(words.number())));
    m.mixed = words.accept("mixed");
    m.where = words.reason();
    return m;
  }
  if (name == "saved") {
    wire::Saved m{.generation = generation, .step = words.step()};
    words.expect("save");
    m.number = words.number();
    words.expect("rank");
    m.rank = static_cast<std::int32_t>(words.number());
    words.expect("of");
    m.size = static_cast<std::int32_t>(words.number());
    m.files = {{fmt::format("part-{}", m.rank), 1'000'000, "0"}};
    m.error = words.reason();
    return m;
  }
  if (name == "unreadable") {
    const std::string save = words.word();
    const bool of_reader = words.accept("by-reader");
    return wire::Unreadable{generation, save, words.reason(), of_reader};
  }
  if (name == "publish") return wire::Publish{generation, words.word()};
  if (name == "prepared") return wire::Prepared{generation, words.reason()};
  if (name == "prepare-failed") {
    const auto complaints = about(words);
    return wire::PrepareFailed{generation, words.reason(), complaints};
  }
  if (name == "answer") {
    const StepId committed = words.step();
    return wire::Answer{generation, committed, about(words)};
  }
  if (name == "committed") return wire::Committed{generation, words.step()};
  if (name == "broken") {
    const auto complaints = about(words);
    return wire::Broken{generation, words.reason(), complaints};
  }
  if (name != "entered") words.fail("no message from a worker");
  wire::Entered m{.generation = generation, .step = words.step()};
  if (words.accept("idle")) m.idle_ns = words.duration().count();
  return m;
}

}  // namespace elasticrun::fakes
