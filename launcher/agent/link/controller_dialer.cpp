// See controller_dialer.hpp.
#include "launcher/agent/link/controller_dialer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cstdlib>
#include <utility>

#include "launcher/agent/link/tls_key.hpp"
#include "launcher/machine/machine.hpp"
#include "launcher/machine/network.hpp"
#include "net/sockets.hpp"
#include "net/stream.hpp"

namespace elasticrun::launcher::agent::link {
namespace {

namespace asio = boost::asio;

constexpr Duration stream_time = std::chrono::seconds(15);  // ssh may be busy with many hosts
constexpr std::size_t reasons_max = 2000;                   // in bytes

Time now() { return std::chrono::steady_clock::now(); }

// A path that swallows all packets, such as a firewall that has forgotten this connection, must be
// noticed early enough to dial again while the lease lasts.
net::TcpOptions tcp_options_of(const executors::AgentStart& start) {
  return {.user_timeout = std::chrono::milliseconds(start.lease_ms) / 4};
}

}  // namespace

ControllerDialer::ControllerDialer(asio::io_context& io, const executors::AgentStart& start,
                                   std::vector<std::string> for_others,
                                   std::vector<machine::Gpu> gpus, std::int64_t resumes,
                                   net::DialTime dial_time)
    : io_(io),
      start_(start),
      for_others_(std::move(for_others)),
      dial_time_(dial_time),
      gpus_(std::move(gpus)),
      resumes_(resumes),
      key_(key_of(start)),
      order_(start.addresses.size(), !start.stream.empty()),
      timer_(io),
      dialling_(start.addresses.size() + 1),
      errors_(start.addresses.size() + 1) {}

void ControllerDialer::begin(std::function<void(Result<Dialled>)> done) {
  done_ = std::move(done);
  step(DialTick{});
}

void ControllerDialer::stop() {
  done_ = nullptr;
  timer_.cancel();
  for (net::Operation& operation : dialling_) operation.reset();
}

void ControllerDialer::step(const DialEvent& event) {
  for (const DialAction& action : order_.step(event, now()))
    std::visit([this](const auto& a) { act(a); }, action);
  const Time at = order_.wake_at();
  if (at == never) {
    timer_.cancel();
    return;
  }
  timer_.expires_at(std::chrono::time_point_cast<asio::steady_timer::duration>(at));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error && done_) step(DialTick{});
  });
}

void ControllerDialer::act(const DialAddress& action) {
  const std::string& address = start_.addresses[action.route];
  dial(action.route, net::connect_tcp(address, start_.port),
       net::host_and_port(address, start_.port), address, dial_time_);
}

void ControllerDialer::act(const DialThroughSsh&) {
  const std::size_t route = start_.addresses.size();
  Result<SocketPair> pair = socket_pair();
  if (!pair) return dial(route, pair.error(), {}, {}, stream_time);
  // Begins with a newline: what a login shell has printed may lack its own.
  relay_ = std::make_unique<Relay>(
      io_, std::move(pair->theirs),
      fmt::format("\n{} stream 0 0 {}\n", start_.stream, what_was_tried().substr(0, reasons_max)));
  dial(route, pair->ours.release(), "the controller through ssh", {}, stream_time);
}

void ControllerDialer::act(const GiveUpDialling&) {
  asio::post(io_, [this, error = what_went_wrong()] {
    if (auto done = std::exchange(done_, nullptr)) done(error);
  });
}

// `towards`: the controller's address, or empty if there is none.
void ControllerDialer::dial(std::size_t route, Result<int> socket, const std::string& where,
                            const std::string& towards, net::DialTime time) {
  const wire::Hello hello = hello_from(address_towards(towards));
  // Called when the connection was accepted.
  const auto make_stream = [this, route,
                            tls = net::tls_dialler(io_, key_, tcp_options_of(start_))](int fd) {
    step(DialConnected{route});
    return tls(fd);
  };
  dialling_[route] =
      net::dial_socket(io_, std::move(socket), where, make_stream, hello, time,
                       [this, route, address = hello.address](Result<net::Greeted> result) {
                         answered(route, address, std::move(result));
                       });
}

void ControllerDialer::answered(std::size_t route, const std::string& address,
                                Result<net::Greeted> result) {
  if (!done_) return;
  if (!result) {
    errors_[route] = result.error();
    return step(DialFailed{route});
  }
  auto done = std::exchange(done_, nullptr);
  stop();
  Dialled reached;
  reached.greeted = std::move(*result);
  reached.address = address;
  if (route < start_.addresses.size()) reached.controller = start_.addresses[route];
  reached.through_ssh = route == start_.addresses.size();
  done(std::move(reached));
}

wire::Hello ControllerDialer::hello_from(const std::string& address) const {
  wire::Hello hello;
  hello.protocol = wire::protocol;
  hello.version = start_.version;
  hello.role = "agent";
  hello.job = start_.job;
  hello.term = start_.term;
  hello.host = start_.host;
  hello.pid = ::getpid();
  hello.resumes = resumes_;
  hello.name = start_.name;
  hello.slots = start_.slots;
  hello.address = address;
  hello.free_port = net::free_port(address);
  for (const machine::Gpu& gpu : gpus_) hello.gpus.push_back(machine::answers(gpu) ? gpu.name : "");
  return hello;
}

std::string ControllerDialer::address_towards(const std::string& controller) const {
  // The address from the host file may be known to other hosts only (a translated address); workers
  // listen on an address of this host.
  if (std::ranges::count(for_others_, start_.address) > 0) return start_.address;
  if (!start_.network.empty()) return for_others_.front();
  const char* ssh = std::getenv("SSH_CONNECTION");
  return machine::data_address(machine::source_towards(controller), ssh ? ssh : "", for_others_);
}

Error ControllerDialer::what_went_wrong() const {
  Error error{"cannot reach the controller: " + what_was_tried(), errors_.front().number};
  for (const Error& one : errors_)
    if (!one.text.empty() && one.number != error.number) error.number = 0;
  return error;
}

std::string ControllerDialer::what_was_tried() const {
  std::string text;
  for (const Error& error : errors_)
    if (!error.text.empty()) text += (text.empty() ? "" : "; ") + error.text;
  std::ranges::replace(text, '\n', ' ');
  return text.empty() ? "no address of it is known" : text;
}

}  // namespace elasticrun::launcher::agent::link
