// Watches an agent's standard input after the agent has received its start line. The end of that
// input means that the launcher's channel (ssh, for example) is gone, which alone is no reason to
// end: the control connection is what counts.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>

namespace elasticrun::launcher::agent {

class LauncherChannel {
 public:
  explicit LauncherChannel(boost::asio::io_context& io) : input_(io) {}

  // Calls `closed` once, when the input has ended.
  void watch(std::function<void()> closed);

 private:
  void wait();

  boost::asio::posix::stream_descriptor input_;
  std::function<void()> closed_;
};

}  // namespace elasticrun::launcher::agent
