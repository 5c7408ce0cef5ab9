// Hosts of a real job, with simulated workers: each joins a running elasticrun as elasticrun-agent
// --join does, over a session of its own, TLS included. Their virtual clock follows the real one.
// tests/bench/run --only sessions starts elasticrun beside them and measures what it uses.
//
//     bench_hosts ADDRESS:PORT KEY_FILE HOSTS SLOTS
//
// Prints "world SIZE" for each world that commits. Commands on standard input: "lose" kills a host,
// "finish" ends the training as if the samples were used up.
#include <fmt/format.h>

#include <unistd.h>
#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/streambuf.hpp>
#include <cstdio>
#include <cstdlib>
#include <istream>

#include "launcher/agent/join.hpp"
#include "launcher/agent/link/controller_link.hpp"
#include "launcher/machine/descriptors.hpp"
#include "net/tls.hpp"
#include "tests/bench/control_plane/host.hpp"
#include "tests/bench/control_plane/training.hpp"

namespace elasticrun::bench {
namespace {

namespace asio = boost::asio;

constexpr int dialling_max = 32;  // hosts that join at the same time

// Runs the entries of the virtual clock's queue when their time has come on the real clock.
class RealTime {
 public:
  RealTime(asio::io_context& io, simulate::Queue& queue, std::function<void()> moved)
      : queue_(queue), moved_(std::move(moved)), timer_(io) {}

  // Call it before and after all work that the queue did not start.
  void catch_up() {
    const Time now = begin_ + (std::chrono::steady_clock::now() - began_);
    queue_.at(now, [] {});
    while (queue_.next_at() <= now) queue_.run_next();
    moved_();
    if (queue_.next_at() >= armed_) return;
    armed_ = queue_.next_at();
    timer_.expires_at(began_ + (armed_ - begin_));
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      armed_ = never;
      catch_up();
    });
  }

 private:
  simulate::Queue& queue_;
  std::function<void()> moved_;
  asio::steady_timer timer_;
  Time armed_ = never;
  const Time begin_ = queue_.now();
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

class Hosts {
 public:
  Hosts(const launcher::executors::AgentStart& start, int hosts)
      : start_(start), name_(start.name), hosts_(static_cast<std::size_t>(hosts)) {
    for (int i = 0; i < std::min(hosts, dialling_max); ++i) join();
    read_command();
  }
  void run() { io_.run(); }

 private:
  struct Host {
    std::unique_ptr<launcher::agent::link::ControllerLink> link;
    std::shared_ptr<StubHost> stub;  // from the greeting on
  };

  void join();
  void joined(Host& host, const Result<launcher::agent::link::Dialled>& reached,
              launcher::executors::AgentStart start);
  void gone(Host& host);
  void tell_world();
  void read_command();
  void lose_host();

  launcher::executors::AgentStart start_;
  const std::string name_;
  asio::io_context io_{1};
  simulate::Queue queue_;
  std::map<WorkerId, std::shared_ptr<StubWorker>> workers_;
  Training training_{queue_, handlers_of_training(workers_)};
  Cluster cluster_{queue_, training_, workers_, {}, {}};
  RealTime time_{io_, queue_, [this] { tell_world(); }};
  std::vector<Host> hosts_;
  std::size_t next_ = 0, over_ = 0, lost_ = 0;
  std::size_t told_ = 0;  // the size of the world that was printed last
  asio::posix::stream_descriptor input_{io_, STDIN_FILENO};
  asio::streambuf line_;
};

void Hosts::join() {
  if (next_ == hosts_.size()) return;
  Host& host = hosts_[next_++];
  launcher::executors::AgentStart start = start_;
  start.name = fmt::format("{}{:05}", name_, next_);
  host.link = std::make_unique<launcher::agent::link::ControllerLink>(
      io_, launcher::agent::link::ControllerLink::Handlers{
               .reached =
                   [this, &host, start](const Result<launcher::agent::link::Dialled>& reached) {
                     joined(host, reached, start);
                   },
               .frame =
                   [this, &host](WorkerId worker, std::string_view payload) {
                     time_.catch_up();
                     host.stub->receive(worker, payload);
                     time_.catch_up();
                   },
               .away =
                   [this, &host] {
                     if (!host.stub->alive()) return gone(host);
                     if (lost_++ == 0) fmt::print(stderr, "bench_hosts: a connection was lost\n");
                   },
               .back = [] {},
               .controller_gone = [this, &host](const std::string&) { gone(host); },
               .given_up = [this, &host](const std::string&) { gone(host); },
               .bulk_drained = [] {}});
  host.link->begin(start, {"127.0.0.1"}, {});
}

void Hosts::joined(Host& host, const Result<launcher::agent::link::Dialled>& reached,
                   launcher::executors::AgentStart start) {
  if (!reached) {
    fmt::print(stderr, "bench_hosts: {}\n", reached.error().text);
    std::exit(1);
  }
  launcher::agent::learn(start, reached->greeted.welcome);
  host.link->learned(start);
  using ms = std::chrono::milliseconds;
  cluster_.limits = {start.term, ms(start.lease_ms), ms(start.heartbeat_ms),
                     ms(start.orphan_grace_ms), ms(start.standstill_ms)};
  time_.catch_up();
  host.stub = std::make_shared<StubHost>(
      cluster_,
      StubHost::Uplink{
          .send = [&host](WorkerId worker,
                          std::string_view payload) { host.link->send(worker, payload); },
          .send_heartbeat =
              [&host](wire::agent::Heartbeat heartbeat) { host.link->send_heartbeat(heartbeat); }});
  host.stub->begin();
  time_.catch_up();
  join();
}

void Hosts::gone(Host& host) {
  host.link->end();
  host.stub->die();
  if (++over_ == hosts_.size()) io_.stop();
}

void Hosts::tell_world() {
  if (!training_.running() || training_.members().size() == told_) return;
  if (!training_.settled(training_.members().size())) return;
  told_ = training_.members().size();
  fmt::print("world {}\n", told_);
  std::fflush(stdout);
}

void Hosts::read_command() {
  asio::async_read_until(input_, line_, '\n',
                         [this](const boost::system::error_code& error, std::size_t) {
                           if (error) return io_.stop();
                           std::string command;
                           std::istream(&line_) >> command;
                           std::istream(&line_).ignore();
                           time_.catch_up();
                           if (command == "lose") lose_host();
                           if (command == "finish") training_.finish();
                           time_.catch_up();
                           read_command();
                         });
}

void Hosts::lose_host() {
  Host& host = hosts_[hosts_.size() / 2];
  std::vector<WorkerId> dead;
  for (const auto& [id, worker] : host.stub->workers()) dead.push_back(id);
  gone(host);
  training_.die(dead);
}

int bench_hosts(int argc, char** argv) {
  if (argc != 5) {
    fmt::print(stderr, "usage: bench_hosts ADDRESS:PORT KEY_FILE HOSTS SLOTS\n");
    return 2;
  }
  net::use_tls_alone();
  launcher::machine::raise_descriptor_limit();
  const std::array<const char*, 6> join{"--join", argv[1], "--key", argv[2], "--slots", argv[4]};
  const auto options = launcher::agent::parse_join(join);
  const auto key = options ? launcher::agent::read_key_file(options->key_file) : options.error();
  const auto start = key ? launcher::agent::join_start(*options, *key, ELASTICRUN_VERSION)
                         : Result<launcher::executors::AgentStart>(key.error());
  if (!start) {
    fmt::print(stderr, "bench_hosts: {}\n", start.error().text);
    return 2;
  }
  Hosts(*start, std::atoi(argv[3])).run();
  return 0;
}

}  // namespace
}  // namespace elasticrun::bench

int main(int argc, char** argv) { return elasticrun::bench::bench_hosts(argc, argv); }
