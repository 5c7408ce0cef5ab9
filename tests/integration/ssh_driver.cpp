// Drives the ssh executor by lines on standard input, as a job would, but without a job.
//
//     ssh_driver AGENT SSH_CONFIG [key=milliseconds or number ...]
//     in:   start ID HOST-LIST-ITEM | kill ID | end ID | turns | quit
//     out:  up ID | down ID | exit ID REASON | line ID TEXT | turns BYTES
//
// The first "turns" begins to watch how often the event loop serves other work; the answer to the
// next one is the most bytes that were written between two turns.
//
// Agents get a rendezvous server to dial, so that they live until they are told to end.
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "launcher/ssh/executor.hpp"
#include "rendezvous/server/server.hpp"
#include "wire/codec.hpp"

std::uint64_t written_to_connections();  // written.cpp

namespace {

using namespace elasticrun;
namespace asio = boost::asio;

void print(const std::string& line) {
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

[[noreturn]] void fail(const std::string& text) {
  std::fputs((text + "\n").c_str(), stderr);
  std::exit(2);
}

template <class T>
T value_of(Result<T>&& result) {
  if (!result) fail(result.error().text);
  return std::move(*result);
}

launcher::ssh::SshOptions options_of(int argc, char** argv) {
  launcher::ssh::SshOptions options;
  options.agent = argv[1];
  options.overrides.config_file = argv[2];
  for (int i = 3; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::size_t equals = argument.find('=');
    const std::string key = argument.substr(0, equals);
    const int number = std::atoi(argument.substr(equals + 1).c_str());
    const Duration time = std::chrono::milliseconds(number);
    if (key == "in_flight")
      options.retry.in_flight = number;
    else if (key == "throttled_attempts")
      options.retry.throttled_attempts = number;
    else if (key == "seed")
      options.seed = static_cast<std::uint64_t>(number);
    else if (key == "connect")
      options.stages.connect = time;
    else if (key == "shell")
      options.stages.shell = time;
    else if (key == "end")
      options.end_time = time;
    else
      fail("unknown: " + argument);
  }
  return options;
}

class Driver {
 public:
  explicit Driver(launcher::ssh::SshOptions options);
  void run() { io_.run(); }

 private:
  void read_command();
  void obey(const std::string& line);
  void start(HostId host, const std::string& item);
  void turn();

  asio::io_context io_{1};
  asio::posix::stream_descriptor input_{io_, ::dup(STDIN_FILENO)};
  asio::streambuf commands_;
  const rendezvous::server::HostKeys keys_{"test", net::random_secret()};
  std::map<HostId, launcher::hosts::Host> hosts_;
  std::map<HostId, std::uint32_t> runs_;
  std::unique_ptr<rendezvous::server::Server> server_;
  std::unique_ptr<launcher::ssh::SshExecutor> executor_;
  std::optional<std::uint64_t> written_;  // at the last turn, while turns are watched
  std::uint64_t most_between_turns_ = 0;
};

Driver::Driver(launcher::ssh::SshOptions options) {
  rendezvous::server::ServerOptions server;
  server.address = "127.0.0.1";
  server.welcome = {.protocol = wire::protocol, .version = ELASTICRUN_VERSION, .term = Term(1)};
  server.keys = keys_;
  rendezvous::server::ServerHandlers handlers;
  handlers.knows = [this](const rendezvous::server::KeyOwner& owner) {
    return hosts_.contains(owner.host);
  };
  handlers.admit = [](const wire::Hello&, const rendezvous::server::KeyOwner& owner)
      -> Result<rendezvous::server::KeyOwner> { return owner; };
  handlers.agent_up = [](HostId host, const wire::Hello&, const std::string&) {
    print(fmt::format("up {}", host.value));
  };
  handlers.agent_frame = [](HostId, WorkerId, std::string_view) {};
  handlers.agent_away = [this](HostId host, const std::string&) {
    server_->drop(host);
    print(fmt::format("down {}", host.value));
  };
  handlers.agent_back = [](HostId) {};
  handlers.agent_dead = [](HostId, const std::string&) {};
  handlers.rejected = [](std::uint64_t, const std::string& why) { print("stranger " + why); };
  server_ = value_of(rendezvous::server::Server::listen(io_, server, handlers));
  executor_ = value_of(launcher::ssh::SshExecutor::make(
      io_, std::move(options), [this](HostId host) { return hosts_.at(host); },
      {.on_exit =
           [](HostId host, const std::string& reason) {
             print(fmt::format("exit {} {}", host.value, reason));
           },
       .on_line =
           [](HostId host, const std::string& line) {
             print(fmt::format("line {} {}", host.value, line));
           }}));
  read_command();
}

void Driver::read_command() {
  asio::async_read_until(input_, commands_, '\n',
                         [this](const boost::system::error_code& error, std::size_t) {
                           if (error) return io_.stop();
                           std::istream stream(&commands_);
                           std::string line;
                           std::getline(stream, line);
                           obey(line);
                           read_command();
                         });
}

void Driver::obey(const std::string& line) {
  std::istringstream words(line);
  std::string command;
  HostId host;
  words >> command >> host.value >> std::ws;
  std::string rest;
  std::getline(words, rest);
  if (command == "start") start(host, rest);
  if (command == "kill") executor_->kill(host);
  if (command == "end")
    server_->send(host, WorkerId{}, wire::encode(wire::agent::ToAgent(wire::agent::Shutdown{})));
  if (command == "turns") {
    if (written_) print(fmt::format("turns {}", most_between_turns_));
    if (!std::exchange(written_, written_to_connections())) turn();
  }
  if (command == "quit") io_.stop();
}

void Driver::turn() {
  const std::uint64_t now = written_to_connections();
  const std::uint64_t before = std::exchange(*written_, now);
  if (now > before) most_between_turns_ = std::max(most_between_turns_, now - before);
  asio::post(io_, [this] { turn(); });
}

void Driver::start(HostId host, const std::string& item) {
  const auto hosts = value_of(launcher::hosts::parse_hosts(item + "\n", "stdin"));
  hosts_[host] = hosts.front();
  launcher::executors::AgentStart start;
  start.job = "test";
  const rendezvous::server::HostKey key = keys_.of_agent(host, ++runs_[host]);
  start.identity = key.identity;
  start.key_hex = key.key_hex;
  start.term = Term(1);
  start.host = host;
  start.name = hosts.front().name;
  start.addresses = {"127.0.0.1"};
  start.port = server_->port();
  start.orphan_grace_ms = 0;
  start.version = ELASTICRUN_VERSION;
  executor_->start(start);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) fail("ssh_driver AGENT SSH_CONFIG [key=number ...]");
  std::signal(SIGPIPE, SIG_IGN);
  Driver(options_of(argc, argv)).run();
}
