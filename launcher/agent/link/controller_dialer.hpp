// Connects an agent to its controller: by one of the addresses that it was given, or through the
// ssh connection by which it was started, which needs no open port on either side. DialOrder
// (dial_order.hpp) decides the order; this class does the dialling.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "launcher/agent/link/dial_order.hpp"
#include "launcher/agent/link/relay.hpp"
#include "launcher/executors/agent_start.hpp"
#include "launcher/machine/gpus.hpp"
#include "net/dial.hpp"
#include "net/tls.hpp"

namespace elasticrun::launcher::agent::link {

struct Dialled {
  net::Greeted greeted;
  std::string controller;    // the address that was dialled; empty: through ssh
  std::string address;       // where workers of other hosts reach the workers of this one
  bool through_ssh = false;  // standard input and output are in use then
};

class ControllerDialer {
 public:
  // `for_others`: addresses of this host that may be given to other hosts, best first. `gpus`: by
  // slot. `resumes`: as in wire::Hello. `dial_time`: for each address.
  ControllerDialer(boost::asio::io_context& io, const executors::AgentStart& start,
                   std::vector<std::string> for_others, std::vector<machine::Gpu> gpus,
                   std::int64_t resumes = -1, net::DialTime dial_time = net::greeting_time_default);
  ControllerDialer(const ControllerDialer&) = delete;
  ControllerDialer& operator=(const ControllerDialer&) = delete;

  // Starts dialling. `done` is called once, never inside the call. This object must live as long as
  // the session that it hands over. An error has a number if all ways failed with the same one; see
  // net::DialDone.
  void begin(std::function<void(Result<Dialled>)> done);
  // A machine has accepted a connection, and no program has answered there yet.
  bool awaits_greeting() const { return order_.awaits_greeting(); }
  // Stops dialling; does not call `done`.
  void stop();

 private:
  void step(const DialEvent& event);
  void act(const DialAddress& action);
  void act(const DialThroughSsh& action);
  void act(const GiveUpDialling& action);
  void dial(std::size_t route, Result<int> socket, const std::string& where,
            const std::string& towards, net::DialTime time);
  void answered(std::size_t route, const std::string& address, Result<net::Greeted> result);
  wire::Hello hello_from(const std::string& address) const;
  std::string address_towards(const std::string& controller) const;
  Error what_went_wrong() const;
  std::string what_was_tried() const;

  boost::asio::io_context& io_;
  const executors::AgentStart start_;
  const std::vector<std::string> for_others_;
  const net::DialTime dial_time_;
  const std::vector<machine::Gpu> gpus_;
  const std::int64_t resumes_;
  const net::TlsKey key_;
  std::function<void(Result<Dialled>)> done_;  // empty once called, or stopped
  DialOrder order_;
  boost::asio::steady_timer timer_;
  std::vector<net::Operation> dialling_;  // indexed by way, as errors_ is
  std::vector<Error> errors_;
  std::unique_ptr<Relay> relay_;
};

}  // namespace elasticrun::launcher::agent::link
