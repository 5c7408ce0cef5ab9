// See local_executor.hpp. Uses Boost.Process, with two additions. It closes no descriptor in the
// child, and an agent that kept our listening socket would keep the port; hence CloseOnExec. Its
// exit code does not distinguish a signal from a number; hence native_exit_code.
#include "launcher/executors/local_executor.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/readable_pipe.hpp>
#include <boost/asio/writable_pipe.hpp>
#include <boost/asio/write.hpp>
#include <boost/process/v2/process.hpp>
#include <boost/process/v2/stdio.hpp>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <map>
#include <utility>

#include "base/check.hpp"
#include "launcher/executors/line_splitter.hpp"
#include "launcher/executors/start_process.hpp"
#include "launcher/executors/wrap.hpp"
#include "wire/limits.hpp"

namespace elasticrun::launcher::executors {
namespace {

namespace asio = boost::asio;
namespace process = boost::process::v2;
using ErrorCode = boost::system::error_code;

std::string how_it_ended(int status, const std::string& wrap) {
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  if (!wrap.empty() && (code == 126 || code == 127)) return wrap_failure(wrap, code);
  if (WIFSIGNALED(status))
    return fmt::format("elasticrun-agent was killed by signal {}", WTERMSIG(status));
  if (WEXITSTATUS(status) == 0) return "elasticrun-agent has ended";
  return fmt::format("elasticrun-agent ended with exit code {}", WEXITSTATUS(status));
}

}  // namespace

struct LocalExecutor::Child {
  explicit Child(asio::io_context& io) : input(io), errors(io), process(io), search(io) {}

  HostId host;
  std::string name;
  std::string start_line;
  asio::writable_pipe input;  // kept open: its end means to the agent that we are gone
  asio::readable_pipe errors;
  process::process process;
  process::process search;  // with --wrap: the script that looks for the watchdog and ends it
  LineSplitter lines{wire::line_bytes_max};
  std::array<char, 4096> buffer;
  std::string reason;
  bool killed = false;
  bool ended = false;
  bool errors_ended = false;
};

struct LocalExecutor::State {
  asio::io_context& io;
  std::string agent;
  std::string wrap;
  ExecutorHandlers handlers;
  std::map<HostId, std::shared_ptr<Child>> children;
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);  // checked by pending handlers
};

Result<std::string> find_agent() {
  std::error_code error;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  std::string path = (folder / "elasticrun-agent").string();
  if (::access(path.c_str(), X_OK) == 0) return ok(std::move(path));
  return Error{fmt::format("there is no {}; install elasticrun again", path)};
}

LocalExecutor::LocalExecutor(asio::io_context& io, std::string agent, ExecutorHandlers handlers,
                             std::string wrap)
    : state_(new State{io, std::move(agent), std::move(wrap), std::move(handlers), {}}) {}

LocalExecutor::~LocalExecutor() {
  *state_->alive = false;
  for (auto& [host, child] : state_->children) child->process.detach();
}

void LocalExecutor::start(const AgentStart& start) {
  ER_CHECK(!state_->children.contains(start.host));
  auto child = std::make_shared<Child>(state_->io);
  child->host = start.host;
  child->name = start.name;
  child->start_line = encode(start);
  ErrorCode error;
  asio::readable_pipe agent_input(state_->io);
  asio::writable_pipe agent_errors(state_->io);
  asio::connect_pipe(agent_input, child->input, error);
  if (!error) asio::connect_pipe(child->errors, agent_errors, error);
  if (!error) {
    std::string program = state_->agent;
    std::vector<std::string> arguments;
    if (!state_->wrap.empty()) {
      arguments = {"-c", "exec " + state_->wrap + " \"$0\"", std::exchange(program, "/bin/sh")};
    }
    child->process =
        start_process(state_->io, error, program, arguments,
                      process::process_stdio{agent_input, nullptr, agent_errors}, CloseOnExec{});
  }
  if (error) {
    asio::post(state_->io, [this, alive = state_->alive, child, error] {
      if (*alive)
        state_->handlers.on_exit(
            child->host, fmt::format("cannot start {}: {}", state_->agent, error.message()));
    });
    return;
  }
  state_->children[start.host] = child;
  asio::async_write(child->input, asio::buffer(child->start_line),
                    [child](const ErrorCode&, std::size_t) { child->start_line.clear(); });
  read_errors(child);
  wait(child);
}

void LocalExecutor::kill(HostId host) {
  const auto it = state_->children.find(host);
  if (it == state_->children.end() || it->second->ended) return;
  if (!std::exchange(it->second->killed, true)) return end_at_once(*it->second);
  ::kill(it->second->process.id(), SIGKILL);
}

// This signal makes the watchdog clean up. It cannot do so while it is stopped, hence SIGCONT
// first.
void LocalExecutor::end_at_once(Child& child) {
  if (state_->wrap.empty()) {
    for (const int signal : {SIGCONT, order_to_end}) ::kill(child.process.id(), signal);
    return;
  }
  ErrorCode ignored;  // the second call of kill() does not depend on the script
  child.search =
      start_process(state_->io, ignored, "/bin/sh",
                    {"-c", end_watchdog_script(child.process.id(), true)}, CloseOnExec{});
}

void LocalExecutor::read_errors(const std::shared_ptr<Child>& child) {
  child->errors.async_read_some(
      asio::buffer(child->buffer),
      [this, alive = state_->alive, child](const ErrorCode& error, std::size_t bytes) {
        if (!*alive) return;
        std::string lines;
        child->lines.feed({child->buffer.data(), bytes}, lines);
        if (error) child->lines.finish(lines);
        for (std::string_view rest = lines; !rest.empty();) {
          const std::size_t newline = rest.find('\n');
          line(*child, rest.substr(0, newline));
          rest.remove_prefix(newline + 1);
        }
        if (!error) return read_errors(child);
        child->errors_ended = true;
        finish_if_done(child);
      });
}

void LocalExecutor::line(const Child& child, std::string_view text) const {
  if (state_->handlers.on_line) return state_->handlers.on_line(child.host, std::string(text));
  std::fputs(fmt::format("{}: {}\n", child.name, text).c_str(), stderr);
}

void LocalExecutor::wait(const std::shared_ptr<Child>& child) {
  child->process.async_wait([this, alive = state_->alive, child](const ErrorCode& error, int) {
    if (!*alive) return;
    child->reason = error ? "elasticrun-agent cannot be waited for: " + error.message()
                          : how_it_ended(child->process.native_exit_code(), state_->wrap);
    child->ended = true;
    finish_if_done(child);
  });
}

// Reports the end only after all lines of standard error: the last ones say why the agent ended.
void LocalExecutor::finish_if_done(const std::shared_ptr<Child>& child) {
  if (!child->ended || !child->errors_ended) return;
  state_->children.erase(child->host);
  state_->handlers.on_exit(child->host, child->reason);
}

}  // namespace elasticrun::launcher::executors
