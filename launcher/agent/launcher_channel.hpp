// Standard input of an agent, after it has said what it had to say. Its end means that the
// launcher's channel (ssh, say) is gone, which alone is no reason to end: the control connection is
// what counts.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>

namespace elasticrun::launcher::agent {

class LauncherChannel {
 public:
  explicit LauncherChannel(boost::asio::io_context& io) : input_(io) {}

  // `closed` is called once.
  void watch(std::function<void()> closed);

 private:
  void wait();

  boost::asio::posix::stream_descriptor input_;
  std::function<void()> closed_;
};

}  // namespace elasticrun::launcher::agent
