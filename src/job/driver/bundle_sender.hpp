// Sends the bundle, the program or Python script that is copied to hosts, to the hosts that ask for
// it (--ship): a driver.
//
// Each host reports how much of the bundle it has on its disk, and is sent no more than one window
// beyond that: what it takes in half a second. So a slow host or link takes up little memory here,
// and a heartbeat never waits long behind the bundle, neither in our queue nor in those of the
// network. Only a limited number of hosts are served at a time; the others wait for their turn. The
// files may lie on a file server that does not answer, so a separate thread reads them.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "job/spec.hpp"
#include "launcher/bundle/bundle.hpp"
#include "launcher/executors/file_thread.hpp"
#include "wire/agent/messages.hpp"

namespace elasticrun::job::driver {

class BundleSender {
 public:
  using Send =
      std::function<void(HostId, const wire::agent::BundlePart&)>;  // behind all other frames
  BundleSender(boost::asio::io_context& io, const JobSpec& spec, Send send)
      : io_(io), spec_(spec), send_(std::move(send)) {}

  // Reads the whole program, so it is called before anything is started. Returns what went wrong,
  // or nothing.
  std::optional<launcher::bundle::BundleTrouble> gather();
  // Adds the bundle's hash and size to the order, so that the agent knows what to ask for.
  void announce(wire::agent::StartWorker& order) const;
  // The host asks for the bundle, or reports how much of it it has taken.
  void asked(HostId host, const wire::agent::BundleWanted& wanted, Time now);
  // Ends the delivery to that host, and drops its request if it still waits.
  void gone(HostId host);
  // When the program is missing on another host and copying it would help, adds a hint about
  // --ship to the failure's reason.
  void advise(wire::agent::StartFailed& failure) const;

 private:
  struct Delivery {
    std::uint64_t number = 0;  // tells it from an earlier delivery to the same host
    bool reading = false;      // the file thread is reading the next part
    std::size_t file = 0;      // the file that the next part comes from
    std::int64_t offset = 0;   // of the next part in that file, in bytes
    std::int64_t sent = 0;     // bytes of the bundle sent so far
    std::int64_t taken = 0;    // bytes that the host has on its disk, as it reported last
    std::int64_t window = 0;   // most bytes that may be sent beyond `taken`
    // The measurement of the speed that is under way: when it began, and `taken` and `sent` at that
    // time. It ends when the host has taken `sent_then` bytes.
    Time since{};
    std::int64_t taken_then = 0;
    std::int64_t sent_then = 0;
  };
  Delivery begin(std::int64_t from);
  static void measure(Delivery& delivery, Time now);
  void read(HostId host);
  void send(HostId host, Result<std::string> bytes);
  void next();

  boost::asio::io_context& io_;
  const JobSpec& spec_;
  const Send send_;
  bool can_be_copied_ = false;
  // An empty hash means that there is no bundle.
  std::shared_ptr<const launcher::bundle::Bundle> bundle_ =
      std::make_shared<launcher::bundle::Bundle>();
  std::optional<launcher::executors::FileThread> files_;
  std::map<HostId, Delivery> deliveries_;
  std::uint64_t deliveries_begun_ = 0;
  struct Request {
    HostId host;
    std::int64_t from = 0;  // bytes that the host already has
  };
  std::deque<Request> waiting_;
  Time now_{};  // as of the last call of asked()
};

}  // namespace elasticrun::job::driver
