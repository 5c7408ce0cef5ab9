// See executor.hpp. retry.hpp decides which host is tried when, and conversation.hpp talks to one
// host; here both are tied to timers and to the job.
#include "launcher/ssh/executor.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "base/check.hpp"
#include "launcher/ssh/conversation.hpp"

namespace elasticrun::launcher::ssh {
namespace {

namespace asio = boost::asio;

Time now() { return std::chrono::steady_clock::now(); }

Caller this_caller() {
  Caller caller;
  const char* home = std::getenv("HOME");
  if (const passwd* entry = ::getpwuid(::getuid())) {
    caller.user = entry->pw_name;
    caller.home = entry->pw_dir;
  }
  if (home) caller.home = home;
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) == 0) caller.host = name;
  return caller;
}

Result<AgentImage> read_image(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  if (!file) return Error{fmt::format("{}: cannot be read", path)};
  return agent_image(std::move(bytes).str(), path);
}

// One host, from start to on_exit.
struct Run {
  explicit Run(asio::io_context& io) : timer(io) {}

  executors::AgentStart start;
  enum class Phase { starting, running, lost } phase = Phase::starting;
  std::shared_ptr<Conversation> conversation;  // empty in a pause between two attempts
  asio::cancellation_signal cancel;
  asio::steady_timer timer;  // deadline of the stage; later, of the agent's end
  Stage stage{};
  bool late = false;
  bool killed = false;
};

}  // namespace

struct SshExecutor::State : std::enable_shared_from_this<State> {
  State(asio::io_context& io_, SshOptions options_, AgentImage image,
        std::function<hosts::Host(HostId)> host_of_, executors::ExecutorHandlers handlers_)
      : io(io_),
        options(std::move(options_)),
        host_of(std::move(host_of_)),
        handlers(std::move(handlers_)),
        facts(std::make_shared<ConversationFacts>(io_)),
        attempts(options.retry, options.seed),
        marks(mix(options.seed)),
        wake(io_) {
    facts->overrides = options.overrides;
    facts->answers =
        std::make_unique<SshAnswers>(facts->overrides.config_file, this_caller(), facts->files);
    facts->image = std::move(image);
    facts->connect_time = options.stages.connect;
    facts->wrap = options.wrap;
  }

  void feed(const Attempts::Event& event);
  void arm();
  void attempt(HostId host);
  void stage(HostId host, Stage stage);
  void started(HostId host);
  void line(HostId host, const std::string& text);
  void note(HostId host, const std::string& text);
  void ended(HostId host, const std::exception_ptr& thrown, const ConversationEnd& end);
  void on(HostId host, const Symptom& symptom);
  void on(HostId host, const AgentEnded& end) { finish(host, end.reason); }
  void on(HostId host, const ConnectionLost& end);
  void finish(HostId host, const std::string& reason);
  void limit(Run& run, Duration time);

  asio::io_context& io;
  const SshOptions options;
  const std::function<hosts::Host(HostId)> host_of;
  const executors::ExecutorHandlers handlers;
  const std::shared_ptr<ConversationFacts> facts;
  Attempts attempts;
  Rng marks;
  asio::steady_timer wake;
  std::map<HostId, std::shared_ptr<Run>> runs;
  bool alive = true;
};

Result<std::unique_ptr<SshExecutor>> SshExecutor::make(asio::io_context& io, SshOptions options,
                                                       std::function<hosts::Host(HostId)> host_of,
                                                       executors::ExecutorHandlers handlers) {
  auto image = read_image(options.agent);
  if (!image) return image.error();
  return std::unique_ptr<SshExecutor>(new SshExecutor(std::make_shared<State>(
      io, std::move(options), std::move(*image), std::move(host_of), std::move(handlers))));
}

SshExecutor::SshExecutor(std::shared_ptr<State> state) : state_(std::move(state)) {}

SshExecutor::~SshExecutor() {
  state_->alive = false;
  state_->wake.cancel();
  for (auto& [host, run] : std::exchange(state_->runs, {})) {
    run->timer.cancel();
    run->cancel.emit(asio::cancellation_type::terminal);
  }
}

void SshExecutor::start(const executors::AgentStart& start) {
  auto run = std::make_shared<Run>(state_->io);
  run->start = start;
  ER_CHECK(state_->runs.emplace(start.host, run).second);
  asio::post(state_->io, [state = state_, run] {
    if (state->alive && !run->killed) state->feed(Attempts::Wanted{run->start.host});
  });
}

void SshExecutor::kill(HostId host) {
  const auto it = state_->runs.find(host);
  if (it == state_->runs.end()) return;
  Run& run = *it->second;
  const bool again = std::exchange(run.killed, true);
  if (run.phase == Run::Phase::running) {
    if (again) return run.cancel.emit(asio::cancellation_type::terminal);
    run.conversation->end_agent();
    return state_->limit(run, state_->options.end_time);
  }
  if (again) return;
  if (run.phase == Run::Phase::starting && run.conversation)
    return run.cancel.emit(asio::cancellation_type::terminal);
  state_->feed(Attempts::Unwanted{host});
  asio::post(state_->io, [state = state_, host] {
    if (state->alive) state->finish(host, "given up");
  });
}

// ---------------------------------------------------------------- attempts

void SshExecutor::State::feed(const Attempts::Event& event) {
  for (const Attempts::Action& action : attempts.step(event, now())) {
    if (const auto* next = std::get_if<Attempts::Attempt>(&action)) attempt(next->host);
    if (const auto* over = std::get_if<Attempts::GiveUp>(&action)) finish(over->host, over->reason);
  }
  arm();
}

void SshExecutor::State::arm() {
  const Time at = attempts.wake_at();
  if (at == never) {
    wake.cancel();
    return;
  }
  wake.expires_at(std::chrono::time_point_cast<asio::steady_timer::duration>(at));
  wake.async_wait([state = shared_from_this()](const boost::system::error_code& error) {
    if (!error && state->alive) state->feed(Attempts::PauseOver{});
  });
}

void SshExecutor::State::attempt(HostId host) {
  const auto run = runs.at(host);
  const auto self = shared_from_this();
  run->late = false;
  const auto if_alive = [self](const auto& f) {
    if (self->alive) f();
  };
  executors::AgentStart start = run->start;
  start.stream = fmt::format("elasticrun-{:016x}", marks.next());
  run->conversation = std::make_shared<Conversation>(
      io, facts, host_of(host), start.stream, start,
      ConversationHandlers{
          .stage = [=](Stage stage) { if_alive([&] { self->stage(host, stage); }); },
          .started = [=] { if_alive([&] { self->started(host); }); },
          .line = [=](const std::string& text) { if_alive([&] { self->line(host, text); }); },
          .note = [=](const std::string& text) { if_alive([&] { self->note(host, text); }); }});
  asio::co_spawn(
      io, run->conversation->run(),
      asio::bind_cancellation_slot(
          run->cancel.slot(), [self, run, host, kept = run->conversation](
                                  const std::exception_ptr& thrown, const ConversationEnd& end) {
            if (self->alive) self->ended(host, thrown, end);
          }));
}

void SshExecutor::State::limit(Run& run, Duration time) {
  run.timer.expires_after(time);
  run.timer.async_wait([self = shared_from_this(),
                        run = runs.at(run.start.host)](const boost::system::error_code& error) {
    if (error || !self->alive || run->timer.expiry() > asio::steady_timer::clock_type::now())
      return;
    run->late = true;
    run->cancel.emit(asio::cancellation_type::terminal);
  });
}

void SshExecutor::State::stage(HostId host, Stage stage) {
  Run& run = *runs.at(host);
  run.stage = stage;
  Duration time = deadline_of(stage, options.stages);
  const Duration configured = run.conversation->config().connect_timeout;
  if (stage == Stage::connect && configured > Duration::zero()) time = std::min(time, configured);
  limit(run, time);
}

void SshExecutor::State::started(HostId host) {
  Run& run = *runs.at(host);
  run.timer.cancel();
  run.stage = Stage::run;
  run.phase = Run::Phase::running;
  feed(Attempts::Started{host});
}

void SshExecutor::State::line(HostId host, const std::string& text) {
  if (handlers.on_line) return handlers.on_line(host, text);
  std::fputs(fmt::format("{}: {}\n", runs.at(host)->start.name, text).c_str(), stderr);
}

void SshExecutor::State::note(HostId host, const std::string& text) {
  if (handlers.on_note) return handlers.on_note(host, text);
  line(host, text);
}

// ---------------------------------------------------------------- how it ends

void SshExecutor::State::ended(HostId host, const std::exception_ptr& thrown,
                               const ConversationEnd& end) {
  Run& run = *runs.at(host);
  run.timer.cancel();
  if (run.killed && run.phase == Run::Phase::running && thrown)
    return finish(host, "did not end when told to; its ssh connection was closed");
  if (run.killed && thrown) return finish(host, "given up at stage " + to_text(run.stage));
  if (run.late) return on(host, Symptom{.stage = run.stage, .late = true});
  if (thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& error) {
      return on(host, Symptom{.stage = run.stage, .text = error.what()});
    }
  }
  std::visit([&](const auto& e) { on(host, e); }, end);
}

void SshExecutor::State::on(HostId host, const Symptom& symptom) {
  Run& run = *runs.at(host);
  const Trouble trouble =
      describe(symptom, run.conversation->config(), deadline_of(symptom.stage, options.stages));
  if (run.killed || run.phase == Run::Phase::running) return finish(host, trouble.text);
  run.conversation.reset();
  feed(Attempts::Failed{host, trouble});
}

void SshExecutor::State::on(HostId host, const ConnectionLost& end) {
  Run& run = *runs.at(host);
  if (run.killed) return finish(host, "its ssh connection was lost: " + end.why);
  run.phase = Run::Phase::lost;
  line(host,
       fmt::format("the ssh connection is lost ({}){}", end.why,
                   end.with_stream ? ", and its control stream with it" : "; going on without it"));
}

void SshExecutor::State::finish(HostId host, const std::string& reason) {
  const auto run = runs.at(host);
  runs.erase(host);
  feed(Attempts::Unwanted{host});  // frees its place among the hosts in flight
  handlers.on_exit(host, reason);
}

}  // namespace elasticrun::launcher::ssh
