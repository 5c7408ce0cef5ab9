#include "job/controller.hpp"

#include <arpa/inet.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <fstream>
#include <map>
#include <sstream>

#include "base/check.hpp"
#include "base/error.hpp"
#include "job/agents.hpp"
#include "job/supervisor.hpp"
#include "launcher/environment.hpp"
#include "rendezvous/server.hpp"
#include "wire/codec.hpp"

namespace elasticrun::job {
namespace asio = boost::asio;

namespace {

// The host file is small and local; looking at its times five times a second costs nothing and
// works on any file system, where inotify sees no change that another machine makes.
constexpr Duration hosts_file_interval = std::chrono::milliseconds(200);
constexpr Duration last_exit_limit = std::chrono::seconds(3);

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  ER_CHECK(::getrandom(bytes.data(), count, 0) == static_cast<ssize_t>(count));
  return bytes;
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

// A port that is free now, for programs that want MASTER_PORT.
int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  int port = 0;
  if (fd >= 0 && ::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0)
    port = ntohs(address.sin_port);
  if (fd >= 0) ::close(fd);
  return port;
}

std::string utc_now() {
  const auto now = std::chrono::system_clock::now();
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(now)), ms % 1000);
}

class Run {
 public:
  Run(const JobSpec& spec, const launcher::Machine& machine, Sink& sink)
      : spec_(spec),
        sink_(sink),
        agents_(io_, spec_, machine,
                {.gone = [this](HostId host, const std::string& why) { agent_gone(host, why); },
                 .line =
                     [this](HostId host, const std::string& line) {
                       sink_.say(Tone::error, host_name(host) + ": " + line);
                     }}) {}

  int run();

 private:
  Result<void> prepare();
  Result<void> listen();
  launcher::AgentStart agents_are_told() const;
  void hosts_are(const std::vector<launcher::Host>& hosts);
  wire::StartWorker start_order(WorkerId id, SlotId slot, Rank rank, int size);

  void feed(const SupervisorEvent& event);
  void arm();
  void act(StartAgent& action) { agents_.start(action.host); }
  void act(KillAgent& action) {
    server_->drop(action.host);
    agents_.kill(action.host);
  }
  void act(Order& action) {
    server_->send(action.host, WorkerId{}, wire::encode(wire::ToAgent(action.order)));
  }
  void act(Deliver& action) {
    server_->send(action.host, action.worker, wire::encode(wire::ToWorker(action.letter)));
  }
  void act(Record& action) { sink_.event(to_json(action.event, utc_now())); }
  void act(Say& action) { sink_.say(action.tone, action.text); }
  void act(Ranked& action) { speakers_[action.worker].rank = action.rank; }
  void act(Finish& action);

  void frame(HostId host, WorkerId worker, std::string_view payload);
  void agent_gone(HostId host, const std::string& reason);
  void watch_signals();
  void watch_hosts_file();
  void look_at_hosts_file();
  void maybe_end();
  std::string host_name(HostId host) const;

  JobSpec spec_;
  Sink& sink_;
  asio::io_context io_{1};
  Agents agents_;
  std::unique_ptr<rendezvous::Server> server_;
  std::unique_ptr<Supervisor> supervisor_;
  asio::steady_timer wake_{io_};
  asio::steady_timer watch_{io_};
  asio::steady_timer last_exit_{io_};
  asio::signal_set signals_{io_};

  std::string job_id_ = hex(random_bytes(6));
  std::string key_ = random_bytes(32);
  int master_port_ = free_port();
  launcher::HostBook book_;
  std::map<HostId, launcher::Host> hosts_;  // every one there ever was
  std::vector<launcher::Slot> slots_;
  std::vector<std::string> passed_here_, passed_elsewhere_;  // of the caller's environment
  std::map<WorkerId, Speaker> speakers_;
  struct timespec hosts_file_time_ {};
  std::optional<Finish> finish_;
};

Result<void> Run::prepare() {
  for (const bool here : {true, false}) {
    auto passed = launcher::passed_environment(spec_.caller_environment, spec_.environment, here);
    if (!passed) return passed.error();
    passed->push_back(
        fmt::format("ELASTICRUN_SAMPLE_MS={}",
                    static_cast<long>(milliseconds(spec_.deadlines.sample_interval))));
    (here ? passed_here_ : passed_elsewhere_) = std::move(*passed);
  }
  auto supervisor =
      Supervisor::make(spec_, Wiring{[this](WorkerId id, SlotId slot, Rank rank, int size) {
                                       return start_order(id, slot, rank, size);
                                     },
                                     [this](HostId host) { return host_name(host); }});
  if (!supervisor) return supervisor.error();
  supervisor_ = std::move(*supervisor);
  return listen();
}

launcher::AgentStart Run::agents_are_told() const {
  launcher::AgentStart start;
  start.job = job_id_;
  start.key_hex = hex(key_);
  start.term = Term(1);
  start.port = server_->port();
  start.network = spec_.network;
  const auto ms = [](Duration d) { return static_cast<std::int64_t>(milliseconds(d)); };
  start.lease_ms = ms(spec_.deadlines.lease);
  start.beat_ms = ms(spec_.deadlines.beat);
  start.orphan_grace_ms = ms(spec_.deadlines.orphan_grace);
  start.version = ELASTICRUN_VERSION;
  return start;
}

Result<void> Run::listen() {
  if (auto ready = agents_.prepare(); !ready) return ready.error();
  rendezvous::ServerOptions options;
  options.address = agents_.listen_address();
  options.version = ELASTICRUN_VERSION;
  options.term = Term(1);
  options.key.job = job_id_;
  std::ranges::copy(key_, options.key.secret.begin());
  rendezvous::ServerHandlers handlers;
  handlers.agent_up = [this](HostId host, const wire::Hello&, const std::string&) {
    feed(HostUp{host});
  };
  handlers.agent_down = [this](HostId host, const std::string& reason) {
    agent_gone(host, reason);
  };
  handlers.agent_frame = [this](HostId host, WorkerId worker, std::string_view payload) {
    frame(host, worker, payload);
  };
  handlers.stranger = [this](std::uint64_t count, const std::string& why) {
    sink_.say(Tone::detail, fmt::format("a stranger was refused ({} so far): {}", count, why));
  };
  Error last{"no port"};
  for (int port = spec_.port_first; port <= std::max(spec_.port_first, spec_.port_last); ++port) {
    options.port = static_cast<std::uint16_t>(port);
    auto server = rendezvous::Server::listen(io_, options, handlers);
    if (server) {
      server_ = std::move(*server);
      agents_.told(agents_are_told());
      return {};
    }
    last = server.error();
  }
  return last;
}

void Run::hosts_are(const std::vector<launcher::Host>& hosts) {
  const launcher::Plan plan = launcher::make_plan(hosts, spec_.default_slots, book_);
  slots_ = plan.slots;
  SlotsChanged changed;
  changed.slots_by_host = plan.slots_by_host;
  for (const auto& host : hosts) hosts_[book_.meet(host)] = host;
  agents_.hosts_are(hosts_);
  for (const auto& slot : plan.slots) {
    changed.slots.push_back({slot.host, slot.slot});
  }
  feed(changed);
}

wire::StartWorker Run::start_order(WorkerId id, SlotId slot, Rank rank, int size) {
  std::vector<launcher::Slot> world(
      slots_.begin(), slots_.begin() + std::min<std::ptrdiff_t>(size, std::ssize(slots_)));
  const launcher::Slot own{slot.host, host_name(slot.host), slot.index};
  const auto place = static_cast<std::size_t>(rank.value);
  if (place >= world.size()) world.resize(place + 1, own);
  world[place] = own;
  launcher::JobFacts facts;
  facts.job_id = job_id_;
  facts.master_address = agents_.address_of(world.front().host);
  facts.master_port = master_port_;
  facts.max_restarts = spec_.max_restarts.value_or(0);
  facts.generation = supervisor_->membership().generation();
  facts.max_batch = spec_.batch.max_batch;
  speakers_[id] = Speaker{id, own.host_name, slot.index, -1};
  const auto& passed = agents_.is_here(slot.host) ? passed_here_ : passed_elsewhere_;
  return {id, slot.index, spec_.argv, launcher::worker_environment(world, rank, facts, passed),
          spec_.cwd};
}

std::string Run::host_name(HostId host) const {
  const auto found = hosts_.find(host);
  return found == hosts_.end() ? fmt::format("host {}", host.value) : found->second.name;
}

// ---------------------------------------------------------------- the supervisor

void Run::feed(const SupervisorEvent& event) {
  for (auto& action : supervisor_->step(event, std::chrono::steady_clock::now()))
    std::visit([this](auto& a) { act(a); }, action);
  arm();
}

void Run::arm() {
  const Time now = std::chrono::steady_clock::now();
  const Time at = supervisor_->wake_at(now);
  if (finish_ || at == never) return;
  wake_.expires_at(std::max(at, now));
  wake_.async_wait([this](const boost::system::error_code& ec) {
    if (!ec) feed(Tick{});
  });
}

void Run::act(Finish& action) {
  finish_ = action;
  agents_.no_more();
  server_->close();
  last_exit_.expires_after(last_exit_limit);
  last_exit_.async_wait([this](const boost::system::error_code& ec) {
    if (ec) return;
    agents_.kill_all();
    maybe_end();
  });
  maybe_end();
}

void Run::maybe_end() {
  if (finish_ && agents_.none()) io_.stop();
}

void Run::frame(HostId host, WorkerId worker, std::string_view payload) {
  if (worker != WorkerId{}) {
    auto letter = wire::decode<wire::FromWorker>(payload);
    if (letter)
      feed(FromWorker{worker, std::move(*letter)});
    else
      sink_.say(Tone::detail, fmt::format("{}: worker {}: {}", host_name(host), worker.value,
                                          letter.error().text));
    return;
  }
  auto report = wire::decode<wire::FromAgent>(payload);
  if (!report)
    return sink_.say(Tone::error, fmt::format("{}: {}", host_name(host), report.error().text));
  if (const auto* output = std::get_if<wire::Output>(&*report))
    return sink_.output(speakers_[output->worker], output->stream, output->text);
  feed(FromHost{host, std::move(*report)});
}

void Run::agent_gone(HostId host, const std::string& reason) {
  if (!finish_) feed(HostDown{host, reason});
  maybe_end();
}

// ---------------------------------------------------------------- people

void Run::watch_signals() {
  signals_.async_wait([this](const boost::system::error_code& ec, int number) {
    if (ec) return;
    if (number == SIGUSR1 || number == SIGUSR2)
      feed(PassSignal{number});
    else
      feed(Interrupt{number});
    watch_signals();
  });
}

void Run::watch_hosts_file() {
  if (spec_.hosts_file.empty()) return;
  watch_.expires_after(hosts_file_interval);
  watch_.async_wait([this](const boost::system::error_code& ec) {
    if (ec) return;
    look_at_hosts_file();
    watch_hosts_file();
  });
}

void Run::look_at_hosts_file() {
  struct stat now {};
  if (::stat(spec_.hosts_file.c_str(), &now) != 0) return;  // between two names of a rename
  if (now.st_mtim.tv_sec == hosts_file_time_.tv_sec &&
      now.st_mtim.tv_nsec == hosts_file_time_.tv_nsec)
    return;
  std::ostringstream text;
  text << std::ifstream(spec_.hosts_file).rdbuf();
  if (!launcher::is_complete(text.str())) return;  // half written; its time will change again
  const bool first = hosts_file_time_.tv_sec == 0;
  hosts_file_time_ = now.st_mtim;
  if (first) return;
  auto hosts = launcher::parse_hosts(text.str(), spec_.hosts_file);
  if (!hosts) return sink_.say(Tone::error, hosts.error().text + "; the hosts stay as they are");
  hosts_are(*hosts);
}

int Run::run() {
  if (auto ready = prepare(); !ready) {
    sink_.say(Tone::error, ready.error().text);
    return exit_code::nothing_started;
  }
  ::signal(SIGPIPE, SIG_IGN);
  for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2}) signals_.add(number);
  struct sigaction hup {};
  ::sigaction(SIGHUP, nullptr, &hup);
  if (hup.sa_handler != SIG_IGN) signals_.add(SIGHUP);  // nohup(1) stays in force
  watch_signals();
  look_at_hosts_file();
  watch_hosts_file();
  hosts_are(spec_.hosts);
  io_.run();
  ER_CHECK(finish_.has_value());
  if (!finish_->last_words.empty())
    sink_.say(finish_->exit_code == exit_code::ok ? Tone::info : Tone::error, finish_->last_words);
  return finish_->exit_code;
}

}  // namespace

int Controller::run(const JobSpec& spec, const launcher::Machine& machine, Sink& sink) {
  return Run(spec, machine, sink).run();
}

}  // namespace elasticrun::job
