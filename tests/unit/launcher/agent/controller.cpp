// See controller.hpp.
#include "controller.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "net/tls.hpp"
#include "wire/codec.hpp"

namespace elasticrun::launcher::agent {

namespace {

// Sets a variable for processes that are started while this object lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (before_)
      ::setenv(name_, before_->c_str(), 1);
    else
      ::unsetenv(name_);
  }
  Variable(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace

Controller::Controller(const std::function<void(executors::AgentStart&)>& change, bool up) {
  directory_ = std::filesystem::temp_directory_path() / "agent-test-XXXXXX";
  REQUIRE(::mkdtemp(directory_.data()) != nullptr);
  const Variable place("TMPDIR", directory_);
  // Nothing may be kept in this directory, because it is removed with the last login.
  const std::string runtime = directory_ + "/runtime";
  std::filesystem::create_directory(runtime);
  const Variable login("XDG_RUNTIME_DIR", runtime);
  net::ListenerOptions options{.roles = {"agent", "watchdog"}, .job = "job-1"};
  options.welcome.protocol = wire::protocol;
  net::ListenerHandlers handlers{
      .admit = [this](const wire::Hello& hello, const net::Peer&,
                      wire::Welcome& welcome) -> Result<void> {
        if (hello.resumes < 0) return {};
        if (!refuse.empty()) return Error{refuse};
        hung_up();
        ++resumed;
        welcome.received = static_cast<std::int64_t>(received_);
        return {};
      },
      .accepted =
          [this](std::unique_ptr<net::Session> session, const wire::Hello& hello,
                 const net::Peer&) {
            agent_pid = hello.pid;
            heartbeats = 0;
            agent = std::move(session);
            agent->start({.on_frame = [this](WorkerId w, std::string_view p) { frame(w, p); },
                          .on_close = [this](const std::string&) { hung_up(); }});
          },
      .refused = [](const net::Peer&, const std::string&) {}};
  const auto any_key = [](std::string_view) { return net::Secret{}; };
  auto listener = net::listen_tls(io, "127.0.0.1", 0, any_key, {}, options, handlers);
  REQUIRE(listener.has_value());
  listener_ = std::move(*listener);
  executor = std::make_unique<executors::LocalExecutor>(
      io, AGENT,
      executors::ExecutorHandlers{
          .on_exit = [this](HostId, std::string reason) { exit_reason = reason; },
          .on_line = [this](HostId, std::string line) { agent_lines += line + '\n'; }});
  executors::AgentStart start;
  start.job = "job-1";
  start.identity = "job-1/host/0";
  start.key_hex = std::string(64, '0');
  start.name = "n1";
  start.addresses = {"127.0.0.1"};
  start.port = listener_->port();
  start.heartbeat_ms = 50;
  start.version = ELASTICRUN_VERSION;
  change(start);
  const Time begin = std::chrono::steady_clock::now();
  executor->start(start);
  if (up) REQUIRE(until([this] { return agent != nullptr; }));
  up_after = std::chrono::steady_clock::now() - begin;
  std::filesystem::remove_all(runtime);
}

Controller::~Controller() {
  if (executor) {
    executor->kill(HostId{});
    CHECK(agent_ended());
  }
  CHECK(directory_is_empty());
  std::filesystem::remove_all(directory_);
}

void Controller::hung_up() {
  if (!agent) return;
  received_ += agent->received();
  agent.reset();
}

bool Controller::until(const std::function<bool()>& condition) {
  const Time deadline = std::chrono::steady_clock::now() + 20s;
  while (!condition()) {
    io.restart();
    io.run_one_until(deadline);
    if (std::chrono::steady_clock::now() >= deadline) return false;
  }
  return true;
}

void Controller::send(const wire::agent::ToAgent& order) {
  agent->send(WorkerId{}, wire::encode(order));
}

void Controller::start(std::uint32_t worker, std::vector<std::string> argv, std::string cwd) {
  send(wire::agent::StartWorker{
      WorkerId{worker}, 0, std::move(argv), {"PATH=/usr/bin:/bin", "COLOUR=blue"}, std::move(cwd)});
}

void Controller::shell(std::uint32_t worker, const std::string& script) {
  start(worker, {"sh", "-c", script});
}

WorkerView& Controller::finished(std::uint32_t worker, const std::string& text) {
  WorkerView& view = workers[worker];
  REQUIRE(until([&] {
    return (view.exited || view.failed) && (view.out + view.err).find(text) != std::string::npos;
  }));
  return view;
}

net::Fd Controller::process_named_by(std::uint32_t worker) {
  WorkerView& view = workers[worker];
  REQUIRE(until([&] { return view.out.find('\n') != std::string::npos; }));
  return process(std::stoi(view.out));
}

int Controller::pid_of(std::uint32_t worker) {
  const WorkerView& view = workers[worker];
  REQUIRE(until([&] { return view.pid != 0; }));
  return view.pid;
}

net::Fd Controller::process(int pid) {
  net::Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  REQUIRE(process.get() >= 0);
  return process;
}

void Controller::remove_what_is_left() {
  for (const auto& entry : std::filesystem::directory_iterator(directory_))
    std::filesystem::remove_all(entry);
}

std::filesystem::path Controller::agents_directory() const {
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) return entry.path();
  return {};
}

bool Controller::directory_is_empty() const { return std::filesystem::is_empty(directory_); }

void Controller::frame(WorkerId worker, std::string_view payload) {
  if (worker != WorkerId{}) {
    messages.push_back(fmt::format("{}: {}", worker.value, payload));
    return;
  }
  const Result<wire::agent::FromAgent> message = wire::decode<wire::agent::FromAgent>(payload);
  REQUIRE(message.has_value());
  take(*message);
}

void Controller::take(const wire::agent::FromAgent& message) {
  // As the job does that does not stop.
  if (std::holds_alternative<wire::agent::StopAsked>(message))
    return send(wire::agent::Shutdown{Duration(100ms).count()});
  if (const auto* started = std::get_if<wire::agent::WorkerStarted>(&message))
    workers[started->worker.value].pid = started->pid;
  if (const auto* failure = std::get_if<wire::agent::StartFailed>(&message)) {
    WorkerView& view = workers[failure->worker.value];
    view.failed = true;
    view.code = failure->code;
    view.reason = failure->reason;
  }
  if (const auto* dies = std::get_if<wire::agent::WorkerDies>(&message)) {
    WorkerView& view = workers[dies->worker.value];
    CHECK(!view.exited);
    view.dies = true;
    view.code = dies->code;
    view.signal = dies->signal;
  }
  if (const auto* exit = std::get_if<wire::agent::WorkerExited>(&message)) {
    WorkerView& view = workers[exit->worker.value];
    CHECK(!view.exited);
    view.exited = true;
    view.code = exit->code;
    view.signal = exit->signal;
  }
  if (const auto* output = std::get_if<wire::agent::Output>(&message)) {
    CHECK(output->text.value.back() == '\n');
    WorkerView& view = workers[output->worker.value];
    (output->stream == 1 ? view.out : view.err) += output->text.value;
  }
  if (const auto* bundle = std::get_if<wire::agent::BundleWanted>(&message))
    wanted.push_back(*bundle);
  if (const auto* heartbeat = std::get_if<wire::agent::Heartbeat>(&message)) {
    const Time now = std::chrono::steady_clock::now();
    if (last_heartbeat_ != Time{})
      longest_silence = std::max(longest_silence, now - last_heartbeat_);
    last_heartbeat_ = now;
    ++heartbeats;
    if (beating && agent) send(*heartbeat);
  }
}

int parent_of(int pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string word; status >> word;)
    if (word == "PPid:" && status >> word) return std::stoi(word);
  FAIL("no process ", pid);
  return 0;
}

void signal_one(int pid, int number) {
  REQUIRE(pid > 1);
  ::kill(pid, number);
}

bool is_locked(const std::filesystem::path& directory) {
  const net::Fd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(fd.get() >= 0);
  return ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0;
}

bool gone(const net::Fd& process) {
  pollfd waiting{process.get(), POLLIN, 0};
  return ::poll(&waiting, 1, 10'000) == 1;
}

}  // namespace elasticrun::launcher::agent
