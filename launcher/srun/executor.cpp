// See executor.hpp.
#include "launcher/srun/executor.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/readable_pipe.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/writable_pipe.hpp>
#include <boost/asio/write.hpp>
#include <boost/process/v2/process.hpp>
#include <boost/process/v2/stdio.hpp>
#include <climits>
#include <csignal>
#include <cstdio>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/time.hpp"
#include "launcher/executors/line_splitter.hpp"
#include "launcher/executors/start_process.hpp"
#include "launcher/executors/wrap.hpp"
#include "launcher/srun/step.hpp"
#include "wire/limits.hpp"

namespace elasticrun::launcher::srun {
namespace {

namespace asio = boost::asio;
namespace process = boost::process::v2;
using ErrorCode = boost::system::error_code;

constexpr const char* env_program = "/usr/bin/env";
// How long a step that ends one agent may take. A node that is lost does not answer it.
constexpr Duration script_time = std::chrono::seconds(10);

// A process of srun with what it writes, line by line.
struct Srun {
  explicit Srun(asio::io_context& io) : input(io), process(io) {}

  struct Stream {
    explicit Stream(asio::io_context& io) : pipe(io) {}
    asio::readable_pipe pipe;
    executors::LineSplitter lines{wire::line_bytes_max};
    std::array<char, 16384> buffer{};
    bool ended = false;
  };

  asio::writable_pipe input;  // kept open: its end means to the agents that we are gone
  std::string start_line;
  std::vector<std::unique_ptr<Stream>> streams;
  process::process process;
  bool ended = false;

  bool done() const {
    for (const auto& stream : streams)
      if (!stream->ended) return false;
    return ended;
  }
  void signal(int number) {
    if (!ended) ::kill(process.id(), number);
  }
};

}  // namespace

struct SrunExecutor::State : std::enable_shared_from_this<SrunExecutor::State> {
  State(asio::io_context& context, SrunOptions given, executors::ExecutorHandlers called)
      : io(context), options(std::move(given)), handlers(std::move(called)) {}

  // One step, and which of its agents are not known to have ended.
  struct Running : Srun {
    using Srun::Srun;
    Step step;
    struct Task {
      HostId host;
      int pid = 0;  // of the agent's watchdog; 0: it has not said that it is there
      int kills = 0;
      bool script_sent = false;  // that ends it
      bool ended = false;
    };
    std::vector<Task> tasks;  // by Slurm's number
    int signals = 0;          // that srun was sent: TERM, then KILL
    std::string last_words;   // what srun itself said last

    Task* find(HostId host) {
      for (Task& task : tasks)
        if (task.host == host && !task.ended) return &task;
      return nullptr;
    }
    Task* find(std::string_view node) {
      for (std::size_t i = 0; i < tasks.size(); ++i)
        if (step.nodes[i] == node && !tasks[i].ended) return &tasks[i];
      return nullptr;
    }
    // How often all agents that have not ended were to be killed.
    int kills_of_all() const {
      int least = INT_MAX;
      for (const Task& task : tasks)
        if (!task.ended) least = std::min(least, task.kills);
      return least;
    }
  };

  // ---------------------------------------------------------------- starting

  void start(const executors::AgentStart& agent) {
    waiting.push_back(agent);
    later(starts_due, [](State& state) { state.start_steps(); });
  }

  // Calls `what` when the present turn is over, once for all calls of the turn.
  void later(bool& due, void (*what)(State&)) {
    if (std::exchange(due, true)) return;
    asio::post(io, [weak = weak_from_this(), &due, what] {
      const auto state = weak.lock();
      if (!state) return;
      due = false;
      what(*state);
    });
  }

  void start_steps() {
    std::map<int, std::vector<executors::AgentStart>> by_component;
    for (executors::AgentStart& agent : std::exchange(waiting, {})) {
      const int component = options.component_of(agent.host);
      if (alone.erase(agent.host) > 0)
        start_step(component, {std::move(agent)});
      else
        by_component[component].push_back(std::move(agent));
    }
    for (const auto& [component, agents] : by_component) start_step(component, agents);
  }

  void start_step(int component, std::vector<executors::AgentStart> agents) {
    // Slurm numbers tasks by the order of the nodes in the job, in which hosts are numbered, too.
    std::ranges::sort(agents, {}, &executors::AgentStart::host);
    auto running = std::make_shared<Running>(io);
    Step& step = running->step;
    step.component = component;
    step.agent = options.agent;
    step.wrap = options.wrap;
    step.mark = fmt::format("elasticrun-{:016x}-{}", options.seed, ++steps_made);
    step.copy = fmt::format("/tmp/agent-{}.{:016x}-{}", options.hash, options.seed, steps_made);
    for (const executors::AgentStart& agent : agents) {
      step.nodes.push_back(agent.name);
      running->tasks.push_back({.host = agent.host});
    }
    executors::AgentStart told = agents.front();
    if (agents.size() > 1) {
      told.host = no_host;
      told.identity = options.step_identity;
      told.key_hex = options.step_key_hex;
      told.name.clear();
      told.address.clear();
    }
    running->start_line = encode(told);
    if (const auto error = launch(*running, start_arguments(step), true))
      return asio::post(io, [self = shared_from_this(), running, error] {
        self->end_all(*running, fmt::format("cannot start srun: {}", error.message()));
      });
    steps.push_back(running);
    asio::async_write(running->input, asio::buffer(running->start_line),
                      [running](const ErrorCode&, std::size_t) { running->start_line.clear(); });
    const auto line = [this, running](std::string_view text) { heard(*running, text); };
    const auto ended = [this, running] { step_ended(running); };
    for (std::size_t i = 0; i < running->streams.size(); ++i) read(running, i, line, ended);
    wait(running, ended);
  }

  ErrorCode launch(Srun& srun, const std::vector<std::string>& arguments, bool with_output) {
    ErrorCode error;
    asio::readable_pipe input(io);
    asio::writable_pipe output(io), errors(io);
    asio::connect_pipe(input, srun.input, error);
    for (asio::writable_pipe* pipe : {&output, &errors}) {
      if (error || !with_output) continue;
      srun.streams.push_back(std::make_unique<Srun::Stream>(io));
      asio::connect_pipe(srun.streams.back()->pipe, *pipe, error);
    }
    if (error) return error;
    if (with_output)
      srun.process = executors::start_process(io, error, env_program, arguments,
                                              process::process_stdio{input, output, errors},
                                              executors::OwnSession{});
    else
      srun.process = executors::start_process(io, error, env_program, arguments,
                                              process::process_stdio{input, nullptr, nullptr},
                                              executors::OwnSession{});
    return error;
  }

  template <class Line, class Ended>
  void read(const std::shared_ptr<Running>& running, std::size_t index, Line line, Ended ended) {
    Srun::Stream& stream = *running->streams[index];
    stream.pipe.async_read_some(asio::buffer(stream.buffer),
                                [this, weak = weak_from_this(), running, index, line, ended](
                                    const ErrorCode& error, std::size_t bytes) {
                                  const auto self = weak.lock();
                                  if (!self) return;
                                  Srun::Stream& from = *running->streams[index];
                                  std::string lines;
                                  from.lines.feed({from.buffer.data(), bytes}, lines);
                                  if (error) from.lines.finish(lines);
                                  for (std::string_view rest = lines; !rest.empty();) {
                                    const std::size_t newline = rest.find('\n');
                                    line(rest.substr(0, newline));
                                    rest.remove_prefix(newline + 1);
                                  }
                                  if (!error) return read(running, index, line, ended);
                                  from.ended = true;
                                  if (running->done()) ended();
                                });
  }

  template <class Ended>
  void wait(const std::shared_ptr<Running>& running, Ended ended) {
    running->process.async_wait([weak = weak_from_this(), running, ended](const ErrorCode&, int) {
      const auto self = weak.lock();
      if (!self) return;
      running->ended = true;
      if (running->done()) ended();
    });
  }

  // ---------------------------------------------------------------- what comes back

  void heard(Running& running, std::string_view line) {
    if (const auto ended = tasks_ended(line)) {
      for (const std::string& node : ended->nodes)
        if (Running::Task* task = running.find(node)) end(*task, ended->reason);
      return;
    }
    const auto from = task_line(line);
    if (!from || from->task >= std::ssize(running.tasks)) {
      if (!line.empty()) running.last_words = line;
      return;
    }
    Running::Task& task = running.tasks[static_cast<std::size_t>(from->task)];
    if (const auto there = agent_there(from->text, running.step.mark)) {
      task.pid = there->pid;
      if (there->damaged) say(running, task, "the copy of elasticrun-agent there is damaged");
      if (task.kills > 0) later(kills_due, [](State& state) { state.kill_agents(); });
      return;
    }
    if (!from->text.empty()) say(running, task, from->text);
  }

  void say(const Running& running, const Running::Task& task, std::string_view text) const {
    if (handlers.on_line) return handlers.on_line(task.host, std::string(text));
    const auto index = static_cast<std::size_t>(&task - running.tasks.data());
    std::fputs(fmt::format("{}: {}\n", running.step.nodes[index], text).c_str(), stderr);
  }

  void end(Running::Task& task, const std::string& reason) {
    if (!std::exchange(task.ended, true)) handlers.on_exit(task.host, reason);
  }

  void end_all(Running& running, const std::string& reason) {
    for (Running::Task& task : running.tasks) end(task, reason);
  }

  void step_ended(const std::shared_ptr<Running>& running) {
    std::erase(steps, running);
    if (running->tasks.size() > 1)
      for (const Running::Task& task : running->tasks)
        if (task.pid == 0) alone.insert(task.host);
    const int status = running->process.native_exit_code();
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
      return end_all(*running, "there is no srun along PATH, though this is a job of Slurm");
    const bool failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    end_all(*running, failed && !running->last_words.empty()
                          ? running->last_words
                          : "the step of srun with elasticrun-agent has ended");
  }

  // ---------------------------------------------------------------- killing

  void kill(HostId host) {
    const auto is_it = [&](const executors::AgentStart& agent) { return agent.host == host; };
    if (std::erase_if(waiting, is_it) > 0)
      asio::post(io, [weak = weak_from_this(), host] {
        if (const auto self = weak.lock()) self->handlers.on_exit(host, "it was not started");
      });
    for (const auto& running : steps)
      if (Running::Task* const task = running->find(host)) ++task->kills;
    later(kills_due, [](State& state) { state.kill_agents(); });
  }

  // A step all of whose agents are to end is ended by its srun; otherwise a step beside it ends the
  // agent.
  void kill_agents() {
    for (const auto& running : std::vector(steps)) {
      if (const int kills = running->kills_of_all(); kills > 0) {
        if (running->signals < std::min(kills, 2))
          running->signal(++running->signals == 1 ? SIGTERM : SIGKILL);
        continue;
      }
      for (std::size_t i = 0; i < running->tasks.size(); ++i) {
        Running::Task& task = running->tasks[i];
        if (task.kills == 0 || task.script_sent) continue;
        // One that has not come yet is ended when it comes.
        if (task.pid == 0) {
          end(task, "elasticrun-agent has not said that it is there");
          continue;
        }
        task.script_sent = true;
        kill_agent(running, i);
      }
    }
  }

  void kill_agent(const std::shared_ptr<Running>& running, std::size_t index) {
    auto script = std::make_shared<Srun>(io);
    auto timer = std::make_shared<asio::steady_timer>(io, script_time);
    const int pid = running->tasks[index].pid;
    const auto error =
        launch(*script,
               script_arguments(running->step.nodes[index], running->step.component,
                                executors::end_watchdog_script(pid, !running->step.wrap.empty())),
               false);
    const auto over = [weak = weak_from_this(), running, index] {
      if (const auto self = weak.lock())
        self->end(running->tasks[index], "elasticrun-agent was ended");
    };
    if (error) return asio::post(io, over);
    script->process.async_wait([script, timer, over, running, index](const ErrorCode&, int code) {
      script->ended = true;
      if (code != 0) running->tasks[index].script_sent = false;  // another kill tries again
      timer->cancel();
      over();
    });
    timer->async_wait([script](const ErrorCode& cancelled) {
      if (!cancelled) script->signal(SIGKILL);
    });
  }

  asio::io_context& io;
  const SrunOptions options;
  const executors::ExecutorHandlers handlers;
  std::vector<executors::AgentStart> waiting;
  // Hosts of a step that has failed whole, as it does when one node does not answer: each gets a
  // step of its own next time.
  std::set<HostId> alone;
  std::vector<std::shared_ptr<Running>> steps;
  int steps_made = 0;
  bool starts_due = false, kills_due = false;
};

SrunExecutor::SrunExecutor(asio::io_context& io, SrunOptions options,
                           executors::ExecutorHandlers handlers)
    : state_(std::make_shared<State>(io, std::move(options), std::move(handlers))) {}

SrunExecutor::~SrunExecutor() {
  // Agents that have not ended by now will not by themselves.
  for (const auto& running : state_->steps) {
    running->signal(SIGTERM);
    running->process.detach();
  }
}

void SrunExecutor::start(const executors::AgentStart& start) { state_->start(start); }

void SrunExecutor::kill(HostId host) { state_->kill(host); }

}  // namespace elasticrun::launcher::srun
