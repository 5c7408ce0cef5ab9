// The core of a whole job on a stage: hosts, workers and signals go in; orders, messages and output
// come out. Heartbeats are left out of the answers, because they come twice a second.
#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/check.hpp"
#include "job/core/job.hpp"
#include "tests/fakes/notation.hpp"
#include "tests/scenarios/stage.hpp"

namespace elasticrun::scenarios {
namespace {

class JobStage final : public Stage {
 public:
  explicit JobStage(const job::JobSpec& spec) {
    auto made = job::Job::make(spec);
    ER_CHECK(made.has_value());
    job_ = std::move(*made);
    job::HostsMet met;
    for (std::uint32_t host = 0; host < 100; ++host)
      met.hosts.push_back(
          {.host = HostId(host), .name = fmt::format("n{}", host), .stays = host == 0});
    (void)job_->step(met, scene_begin);
  }

  Lines play(Words& words, Time now) override {
    Lines lines;
    for (const auto& event : events(words))
      for (std::string& line : tell(event, now)) lines.push_back(std::move(line));
    // Handles at once what is due now; what is due again and again would keep a processor busy.
    for (int again = 0; job_->wake_at(now) <= now; ++again) {
      if (again == 3) {
        lines.push_back("BUG: it wakes again and again");
        break;
      }
      for (std::string& line : tell(job::Tick{}, now)) lines.push_back(std::move(line));
    }
    if (job_->phase() != phase_) {
      phase_ = job_->phase();
      lines.push_back("phase: " + std::string(to_text(phase_)));
    }
    return lines;
  }

 private:
  using Events = std::vector<job::JobEvent>;

  Events events(Words& words) const {
    if (words.at_number()) return messages(words);
    const std::string what = words.word();
    if (what == "tick") return {job::Tick{}};
    if (what == "interrupt") return {job::Interrupt{number(words)}};
    if (what == "suspend") return {job::Suspend{}};
    if (what == "stood-still") return {job::StoodStill{words.duration()}};
    if (what == "pass") return {job::PassSignal{number(words)}};
    if (what == "scale") return {job::Scale{number(words)}};
    if (what == "advised") return {advised(words)};
    if (what == "slots") return {slots(words)};
    if (what == "given") return {given_back(words)};
    if (what == "source") return {noted(words)};
    if (what == "sealed") return {sealed(words)};
    if (what != "host") words.fail("no event of a job");
    const HostId host = words.host();
    if (words.accept("up")) return {job::HostUp{host}};
    if (words.accept("drained")) return {job::nodes::Drained{host, words.reason()}};
    if (words.accept("away")) return {job::HostAway{host, words.reason()}};
    if (words.accept("back")) return {job::HostBack{host}};
    if (words.accept("down")) return {job::HostDown{host, words.reason()}};
    if (words.accept("resumed")) return {job::nodes::Resumed{host, words.reason()}};
    words.expect("says");
    return {job::FromHost{host, report(words)}};
  }
  static Events messages(Words& words) {
    Events events;
    const auto speakers = words.workers();
    words.expect(speakers.size() == 1 ? "says" : "say");
    const wire::FromWorker message = fakes::from_worker(words);
    for (const WorkerId speaker : speakers) events.push_back(job::FromWorker{speaker, message});
    return events;
  }
  // "advised: {...}" is what the program printed; "advised not: ..." says why it printed nothing.
  static job::Advised advised(Words& words) {
    if (words.accept("not")) return {Error{words.reason()}};
    return {ok(words.reason())};
  }
  // "sealed 3"; "sealed 3 not: the disk is full"
  job::SealSave::Answer sealed(Words& words) const {
    const std::int64_t number = words.number();
    if (words.accept("not")) return {number, Error{words.reason()}, {}};
    return {number, ok(fmt::format("/saves/save-{}", number)), to_seal_};
  }
  // "given back 1 2"; "given back 1 2 not: Slurm refuses"
  static job::GiveBack::Answer given_back(Words& words) {
    words.expect("back");
    job::GiveBack::Answer answer;
    while (words.at_number()) answer.hosts.push_back(words.host());
    if (words.accept("not")) answer.taken = Error{words.reason()};
    return answer;
  }
  // "source well: hosts can be read again"; "source trouble: hosts cannot be read"
  static job::HostsNoted noted(Words& words) {
    const bool well = words.accept("well");
    if (!well) words.expect("trouble");
    return {well, words.reason()};
  }
  // "slots 4 2": 4 on host 0, 2 on host 1, ...; "slots guessed 1 1": the hosts will report theirs
  static job::SlotsChanged slots(Words& words) {
    job::SlotsChanged changed;
    changed.source = "hosts";
    changed.guessed = words.accept("guessed");
    if (words.accept("lost")) {
      changed.why = "a GPU was lost";
      changed.source.clear();
    }
    for (std::uint32_t host = 0; words.at_number(); ++host) {
      const int count = number(words);
      if (count > 0) changed.slots_by_host.push_back(count);
      for (int i = 0; i < count; ++i) changed.slots.push_back({HostId(host), i});
    }
    while (words.accept("without")) changed.dropped.insert(words.host());
    return changed;
  }
  static wire::agent::FromAgent report(Words& words) {
    const std::string what = words.word();
    if (what == "heartbeat") return wire::agent::Heartbeat{};
    if (what == "progress") return progress(words);
    if (what == "leaves") return wire::agent::HostLeaves{words.reason()};
    if (what == "asked") return wire::agent::StopAsked{number(words), words.accept("of-job")};
    if (what == "lost") {
      words.expect("gpu");
      const std::int32_t slot = number(words);
      words.expect("xid");
      const std::int32_t xid = number(words);
      return wire::agent::GpuLost{slot, "GPU-x", xid, words.reason()};
    }
    const WorkerId worker = words.worker();
    if (what == "started")
      return wire::agent::WorkerStarted{worker, 1000 + static_cast<int>(worker.value)};
    if (what != "failed" && what != "dies" && what != "exited") words.fail("no report of a host");
    if (what == "exited" && words.accept("with-host"))
      return wire::agent::WorkerExited{worker, 0, 9, words.reason()};
    const bool by_signal = what != "failed" && words.accept("signal");
    if (!by_signal) words.expect("code");
    const int value = number(words);
    if (what == "failed") return wire::agent::StartFailed{worker, value, words.reason()};
    if (what == "dies")
      return wire::agent::WorkerDies{worker, by_signal ? 0 : value, by_signal ? value : 0,
                                     words.empty() ? std::string() : words.reason()};
    return wire::agent::WorkerExited{.worker = worker,
                                     .code = by_signal ? 0 : value,
                                     .signal = by_signal ? value : 0,
                                     .error = words.empty() ? std::string() : words.reason()};
  }
  // "host 0 says progress 1 steps 10 samples 80 time 500ms"
  static wire::agent::Progress progress(Words& words) {
    wire::agent::Progress made{.worker = words.worker()};
    words.expect("steps");
    made.steps = number(words);
    words.expect("samples");
    made.samples = number(words);
    words.expect("time");
    made.wall_ns = words.duration().count();
    return made;
  }
  static int number(Words& words) { return static_cast<int>(words.number()); }

  Lines tell(const job::JobEvent& event, Time now) {
    Lines lines;
    for (const auto& action : job_->step(event, now)) {
      if (const auto* seal = std::get_if<job::SealSave>(&action)) to_seal_ = seal->manifest;
      const auto* order = std::get_if<job::Order>(&action);
      if (!order || !std::holds_alternative<wire::agent::Heartbeat>(order->order))
        std::ranges::move(fakes::to_lines(action), std::back_inserter(lines));
    }
    return lines;
  }

  std::unique_ptr<job::Job> job_;
  job::course::Phase phase_ = job::course::Phase::starting;
  wire::saved::Manifest to_seal_;  // of the newest SealSave
};

// "exec:PROGRAM" takes the rest of the line.
std::string policy(Words& setting) {
  const std::string name = setting.word();
  return name == "exec" ? name + ":" + setting.reason() : name;
}

}  // namespace

// Deadlines that the setting does not name are the defaults.
std::unique_ptr<Stage> job_stage(Words& setting) {
  job::JobSpec spec;
  spec.argv = {"./train"};
  spec.batch.batch = 8;
  spec.unit = launcher::hosts::Unit::slot;
  const auto number = [&] { return static_cast<int>(setting.number()); };
  while (!setting.empty()) {
    const std::string name = setting.word();
    if (name == "min")
      spec.limits.min = number();
    else if (name == "max")
      spec.limits.max = number();
    else if (name == "start")
      spec.start = number();
    else if (name == "spares")
      spec.spares = number();
    else if (name == "base-batch")
      spec.batch.base_batch = number();
    else if (name == "policy")
      spec.policy = policy(setting);
    else if (name == "lr-rule")
      spec.batch.lr_rule = *autoscaler::parse_lr_rule(setting.word());
    else if (name == "deadline")
      spec.aims.deadline = setting.duration();
    else if (name == "max-restarts")
      spec.max_restarts = number();
    else if (name == "resizable")
      spec.resizable = true;
    else if (name == "save")
      spec.saving.folder = "/saves";
    else if (name == "stop-signal")
      spec.saving.stop_signal = static_cast<int>(setting.number());
    else if (name == "save-every")
      spec.saving.every = setting.duration();
    else if (name == "time-limit")
      spec.saving.time_limit = setting.duration();
    else if (name == "saved-step") {  // by an earlier job, in save-1
      spec.saving.found.push_back({"/saves/save-1", {.step = setting.number(), .call = 1}});
      spec.saving.next_number = 2;
    } else if (name == "shrink-after")
      spec.slurm_shrink = setting.duration();
    else if (name == "settle")
      spec.deadlines.settle = setting.duration();
    else if (name == "start-timeout")
      spec.deadlines.start_timeout = setting.duration();
    else
      setting.fail("no option of a job");
  }
  return std::make_unique<JobStage>(spec);
}

}  // namespace elasticrun::scenarios
