// Sends the program to the hosts that ask for it (--ship): a driver.
//
// Each host says how much it has on its disk, and gets no more than a window beyond that: what it
// takes in half a second. A slow host or line thus holds little memory here, and a heartbeat never
// waits long behind the program, be it in our queue or in those of the network. Only so many hosts
// are served at a time, the others wait for their turn. The files may lie on a file server that
// does not answer, so a thread of its own reads them.
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
#include "wire/messages.hpp"

namespace elasticrun::job::driver {

class BundleSender {
 public:
  using Send = std::function<void(HostId, const wire::BundlePart&)>;  // bulk
  BundleSender(boost::asio::io_context& io, const JobSpec& spec, Send send)
      : io_(io), spec_(spec), send_(std::move(send)) {}

  // Before anything is started, because it reads all of the program. Else why not.
  std::optional<launcher::bundle::BundleTrouble> gather();
  // So that the agent knows what to ask for.
  void announce(wire::StartWorker& order) const;
  void asked(HostId host, const wire::BundleWanted& wanted, Time now);
  // That host asks no more.
  void gone(HostId host);
  // Tells a person whose program is missing on another host of --ship, when that would help.
  void advise(wire::StartFailed& failure) const;

 private:
  struct Delivery {
    std::uint64_t number = 0;
    bool reading = false;  // its next part
    std::size_t file = 0;
    std::int64_t offset = 0;  // in it
    std::int64_t sent = 0;
    std::int64_t taken = 0;
    std::int64_t window = 0;
    // The speed is measured from here on, until all that was sent by then has been taken.
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
  bool program_is_here_ = false;
  // Without a hash there is none.
  std::shared_ptr<const launcher::bundle::Bundle> bundle_ =
      std::make_shared<launcher::bundle::Bundle>();
  std::optional<launcher::executors::FileThread> files_;
  std::map<HostId, Delivery> deliveries_;
  std::uint64_t deliveries_begun_ = 0;
  struct Request {
    HostId host;
    std::int64_t from = 0;  // bytes that it has
  };
  std::deque<Request> waiting_;
  Time now_{};  // of the last event that said it
};

}  // namespace elasticrun::job::driver
