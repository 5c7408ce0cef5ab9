// See job.hpp. There is one thread: everything happens inside until().
#include "job.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <csignal>
#include <cstdlib>
#include <set>
#include <utility>

#include "net/listener.hpp"
#include "net/session.hpp"
#include "wire/codec.hpp"

extern char** environ;

namespace elasticrun::engine_test {
namespace {

namespace asio = boost::asio;

constexpr auto patience = std::chrono::seconds(60);
// A worker sends samples on the thread that receives messages, in order. The first sample may have
// been sent before the message arrived, so several are needed.
constexpr int samples_after_message = 3;

Time now() { return std::chrono::steady_clock::now(); }

struct Process {
  pid_t pid = -1;
  int out = -1;  // to read
  int in = -1;   // to write
};

Process spawn(const Job::Arguments& arguments, const std::vector<std::string>& environment) {
  std::array<int, 2> out{}, in{};
  REQUIRE(::pipe2(out.data(), O_CLOEXEC) == 0);
  // A socket and not a pipe: writing to a worker that has just died must not end the test.
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in.data()) == 0);
  std::vector<std::string> texts{TOY};
  texts.insert(texts.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv, env;
  for (std::string& text : texts) argv.push_back(text.data());
  argv.push_back(nullptr);
  std::vector<std::string> variables = environment;
  for (char** variable = environ; *variable; ++variable)
    if (!std::string_view(*variable).starts_with("ELASTICRUN_")) variables.emplace_back(*variable);
  for (std::string& text : variables) env.push_back(text.data());
  env.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  Process process{.out = out[0], .in = in[1]};
  REQUIRE(::posix_spawn(&process.pid, TOY, &actions, nullptr, argv.data(), env.data()) == 0);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(in[0]);
  ::close(out[1]);
  return process;
}

Exit wait_for(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 0, WIFSIGNALED(status) ? WTERMSIG(status) : 0};
}

// Moves complete lines from the text to the list.
void cut_lines(std::string& text, std::vector<std::string>& lines) {
  for (std::size_t end = 0; (end = text.find('\n')) != std::string::npos;) {
    lines.push_back(text.substr(0, end));
    text.erase(0, end + 1);
  }
}

}  // namespace

struct Job::Impl {
  struct Worker {
    pid_t pid = -1;
    int in = -1;
    std::unique_ptr<asio::posix::stream_descriptor> out;
    std::array<char, 4096> buffer{};
    std::string text;
    std::vector<std::string> lines;
    std::unique_ptr<net::Session> session;
    bool ended = false;
    Exit exit;
    int samples_to_come = 0;  // before it has certainly received a Go or Abort
    bool held = false;
    std::vector<wire::FromWorker> messages;  // received, but not processed yet
  };

  explicit Impl(Job& j, BatchPlan p)
      : job(j), plan(std::move(p)), membership(rendezvous::MembershipOptions{}) {}

  void listen();
  void accept(std::unique_ptr<net::Session> session, WorkerId id);
  void read(WorkerId id);
  void ended(WorkerId id);
  void hear(WorkerId id);
  void step(const rendezvous::Event& event);
  void act(rendezvous::Action action);
  std::string history() const;

  Job& job;
  BatchPlan plan;
  rendezvous::Membership membership;
  asio::io_context io;
  std::string directory;
  std::unique_ptr<net::Listener> listener;
  std::map<WorkerId, Worker> workers;
  std::set<WorkerId> ready;
  Generation going;
  std::uint64_t changes = 0;
};

void Job::Impl::listen() {
  std::string path = "/tmp/engine_test.XXXXXX";
  REQUIRE(::mkdtemp(path.data()) != nullptr);
  directory = path;
  auto made = net::listen_unix(
      io, directory + "/agent.sock",
      {.roles = {"worker"},
       .job = "toys",
       .welcome = {.protocol = wire::protocol, .version = "0.1.0"}},
      {.admit = [](const wire::Hello&, const net::Peer&, wire::Welcome&) { return Result<void>(); },
       .accepted = [this](std::unique_ptr<net::Session> session, const wire::Hello& hello,
                          const net::Peer&) { accept(std::move(session), hello.worker); },
       .refused = [](const net::Peer&, const std::string& why) { FAIL_CHECK(why); }});
  REQUIRE(made.has_value());
  listener = std::move(*made);
}

void Job::Impl::accept(std::unique_ptr<net::Session> session, WorkerId id) {
  session->start({.on_frame =
                      [this, id](WorkerId from, std::string_view payload) {
                        CHECK(from == id);
                        const auto message = wire::decode<wire::FromWorker>(payload);
                        REQUIRE(message.has_value());
                        Worker& worker = workers.at(id);
                        worker.messages.push_back(*message);
                        if (!worker.held) hear(id);
                      },
                  .on_close = [this, id](const std::string&) { workers.at(id).session.reset(); }});
  workers.at(id).session = std::move(session);
}

void Job::Impl::hear(WorkerId id) {
  for (const wire::FromWorker& message : std::exchange(workers.at(id).messages, {})) {
    if (job.on_message) job.on_message(id, message);
    if (const auto* sample = std::get_if<wire::Sample>(&message)) {
      job.samples.push_back(*sample);
      --workers.at(id).samples_to_come;
    }
    step(rendezvous::WorkerMessage{id, message});
  }
}

void Job::Impl::read(WorkerId id) {
  Worker& worker = workers.at(id);
  worker.out->async_read_some(asio::buffer(worker.buffer),
                              [this, id](boost::system::error_code error, std::size_t bytes) {
                                if (error == asio::error::operation_aborted) return;
                                Worker& self = workers.at(id);
                                if (error) return ended(id);
                                self.text.append(self.buffer.data(), bytes);
                                cut_lines(self.text, self.lines);
                                read(id);
                              });
}

void Job::Impl::ended(WorkerId id) {
  Worker& worker = workers.at(id);
  worker.exit = wait_for(worker.pid);
  worker.ended = true;
  step(rendezvous::WorkerGone{id, worker.exit.signal != 0 ? "was killed" : "exited"});
}

void Job::Impl::step(const rendezvous::Event& event) {
  // Ready workers may fill up a world that has broken.
  const rendezvous::Wanted all{.size = static_cast<int>(workers.size()),
                               .reserves = {ready.begin(), ready.end()}};
  membership.step(all, now());
  for (rendezvous::Action& action : membership.step(event, now())) act(std::move(action));
}

void Job::Impl::act(rendezvous::Action action) {
  if (const auto* message = std::get_if<rendezvous::ToMembers>(&action)) {
    const auto* go = std::get_if<wire::Go>(&message->message);
    if (go) going = go->generation;
    for (const WorkerId to : message->to) {
      Worker& worker = workers.at(to);
      if (worker.session) worker.session->send(to, wire::encode(message->message));
      if (go || std::holds_alternative<wire::Abort>(message->message))
        worker.samples_to_come = samples_after_message;
    }
  } else if (const auto* fence = std::get_if<rendezvous::Fence>(&action)) {
    job.kill(fence->worker);
  } else if (const auto* wanted = std::get_if<rendezvous::PlanWanted>(&action)) {
    step(rendezvous::PlanMade{wanted->generation, plan});
  } else if (const auto* up = std::get_if<rendezvous::BecameReady>(&action)) {
    ready.insert(up->worker);
  } else if (auto* formed = std::get_if<rendezvous::WorldFormed>(&action)) {
    job.worlds.push_back(std::move(*formed));
  } else if (const auto* trained = std::get_if<rendezvous::Trained>(&action)) {
    job.trained.push_back(*trained);
  } else if (auto* change = std::get_if<rendezvous::ChangeEnded>(&action)) {
    job.changes.push_back(std::move(*change));
  } else if (std::holds_alternative<rendezvous::StateLost>(action)) {
    job.state_lost = true;
  }
}

// For the user who looks for the cause of a failure.
std::string Job::Impl::history() const {
  std::string text;
  for (const auto& world : job.worlds)
    text += fmt::format("; world {} of {} from step {} ({})", world.world.generation.value,
                        world.world.members.size(), world.step.value, world.world.reason);
  for (const auto& change : job.changes)
    if (change.how != rendezvous::ChangeEnded::How::done)
      text += fmt::format("; change {}: {}", change.id.value, change.reason);
  for (const auto& [id, worker] : workers)
    text += fmt::format("; worker {}: {}", id.value,
                        worker.ended           ? "ended"
                        : worker.lines.empty() ? "silent"
                                               : worker.lines.back());
  return text;
}

Job::Job(BatchPlan plan) : impl_(std::make_unique<Impl>(*this, std::move(plan))) {
  impl_->listen();
}

Job::~Job() {
  for (auto& [id, worker] : impl_->workers) {
    ::close(worker.in);
    if (worker.ended) continue;
    ::kill(worker.pid, SIGKILL);
    wait_for(worker.pid);
  }
  impl_->listener.reset();
  CHECK(::rmdir(impl_->directory.c_str()) == 0);  // no file of ours is left in it
}

WorkerId Job::start(const Arguments& arguments) {
  const WorkerId id(static_cast<std::uint32_t>(impl_->workers.size() + 1));
  const char* const backend = std::getenv("TOY_BACKEND");
  const Process process =
      spawn(arguments, {"ELASTICRUN_SOCKET=" + impl_->directory + "/agent.sock",
                        fmt::format("ELASTICRUN_WORKER={}", id.value), "ELASTICRUN_JOB_ID=toys",
                        "ELASTICRUN_SAMPLE_MS=20", "ELASTICRUN_VERIFY_STATE=1",
                        fmt::format("ELASTICRUN_BACKEND={}", backend ? backend : "")});
  Impl::Worker& worker = impl_->workers[id];
  worker.pid = process.pid;
  worker.in = process.in;
  worker.out = std::make_unique<asio::posix::stream_descriptor>(impl_->io, process.out);
  impl_->read(id);
  impl_->step(rendezvous::WorkerUp{id, HostId(1), static_cast<std::int32_t>(id.value)});
  return id;
}

std::vector<WorkerId> Job::form(int n, const Arguments& arguments) {
  std::vector<WorkerId> workers;
  for (int i = 0; i < n; ++i) workers.push_back(start(arguments));
  until_ready(workers);
  change(workers);
  return workers;
}

void Job::change(const std::vector<WorkerId>& add, const std::vector<WorkerId>& remove) {
  until("the change before is over", [&] { return impl_->membership.quiet(); });
  impl_->step(rendezvous::Change{ChangeId(++impl_->changes), add, remove, "the test"});
}

void Job::kill(WorkerId worker) { ::kill(impl_->workers.at(worker).pid, SIGKILL); }

void Job::let_go(WorkerId worker) {
  const char go = 'g';
  REQUIRE(::send(impl_->workers.at(worker).in, &go, 1, MSG_NOSIGNAL) == 1);
}

void Job::hang_up(WorkerId worker) { impl_->workers.at(worker).session.reset(); }

void Job::send(WorkerId worker, const wire::ToWorker& message) {
  Impl::Worker& to = impl_->workers.at(worker);
  to.session->send(worker, wire::encode(message));
  to.samples_to_come = samples_after_message;
}

void Job::hold_messages(WorkerId worker) { impl_->workers.at(worker).held = true; }

void Job::let_messages_through(WorkerId worker) {
  impl_->workers.at(worker).held = false;
  impl_->hear(worker);
}

void Job::until(const std::string& what, const std::function<bool()>& holds) {
  const Time limit = now() + patience;
  while (!holds()) {
    INFO("waiting until ", what, impl_->history());
    REQUIRE(now() < limit);
    const Time wake = std::min(limit, impl_->membership.wake_at());
    impl_->io.restart();
    impl_->io.run_one_until(
        std::chrono::time_point_cast<std::chrono::steady_clock::duration>(wake));
    if (now() >= impl_->membership.wake_at()) impl_->step(rendezvous::Tick{});
  }
}

void Job::until_line(WorkerId worker, const std::string& begin) {
  until(fmt::format("worker {} says '{}'", worker.value, begin),
        [&] { return has_line(worker, begin) || impl_->workers.at(worker).ended; });
  INFO("worker ", worker.value, " has ended without '", begin, "'");
  REQUIRE(has_line(worker, begin));
}

void Job::until_ready(const std::vector<WorkerId>& workers) {
  until("they are ready", [&] {
    for (const WorkerId worker : workers)
      if (!impl_->ready.contains(worker)) return false;
    return true;
  });
}

void Job::until_going(Generation generation) {
  until("the next world is prepared", [&] { return impl_->going >= generation; });
  until_heard();
}

void Job::until_heard() {
  until("the messages are heard", [&] {
    for (const auto& [id, worker] : impl_->workers)
      if (worker.samples_to_come > 0 && !worker.ended) return false;
    return true;
  });
}

void Job::until_all_ended() {
  until("all have ended", [&] {
    for (const auto& [id, worker] : impl_->workers)
      if (!worker.ended) return false;
    return true;
  });
}

const std::vector<std::string>& Job::lines(WorkerId worker) const {
  return impl_->workers.at(worker).lines;
}

bool Job::has_line(WorkerId worker, const std::string& begin) const {
  for (const std::string& line : lines(worker))
    if (line.starts_with(begin)) return true;
  return false;
}

std::string Job::said(WorkerId worker, const std::string& begin) const {
  std::string said;
  for (const std::string& line : lines(worker))
    if (line.starts_with(begin)) said = line.substr(begin.size());
  return said;
}

Exit Job::exit_of(WorkerId worker) const { return impl_->workers.at(worker).exit; }

std::vector<std::vector<std::string>> Job::all_lines() const {
  std::vector<std::vector<std::string>> all;
  for (const auto& [id, worker] : impl_->workers) all.push_back(worker.lines);
  return all;
}

std::vector<std::string> run_alone(const Job::Arguments& arguments) {
  const Process process = spawn(arguments, {});
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t n = 0; (n = ::read(process.out, buffer.data(), buffer.size())) > 0;)
    text.append(buffer.data(), static_cast<std::size_t>(n));
  ::close(process.out);
  ::close(process.in);
  const Exit exit = wait_for(process.pid);
  CHECK(exit.code == 0);
  CHECK(exit.signal == 0);
  std::vector<std::string> lines;
  cut_lines(text, lines);
  return lines;
}

}  // namespace elasticrun::engine_test
