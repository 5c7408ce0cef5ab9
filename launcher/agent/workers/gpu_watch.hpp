// Notices that a GPU of this host is of no use any more (a driver).
//
// A worker whose GPU has failed may die, but often hangs in the kernel instead; its exit code says
// nothing about the GPU. So the GPUs are checked once a second and whenever a worker has ended:
// whether the driver still has a file for the GPU, whether the bus still answers for it, and what
// the kernel's log says. Not by NVML or nvidia-smi: they hang when a GPU does.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <vector>

#include "launcher/machine/machine.hpp"
#include "launcher/machine/xid.hpp"
#include "net/sockets.hpp"
#include "wire/agent/messages.hpp"

namespace boost::asio {
class io_context;
}

namespace elasticrun::launcher::agent::workers {

class GpuWatch {
 public:
  // `lost` is called once for each GPU that is lost, inside of look() or later. Without GPUs
  // nothing is done.
  GpuWatch(boost::asio::io_context& io, std::vector<machine::Gpu> gpus,
           std::function<void(const wire::agent::GpuLost&)> lost);
  void look();

 private:
  void look_again_later();
  std::vector<machine::Xid> news_of_the_log();
  void lose(std::size_t slot, std::int32_t xid, const std::string& reason);

  boost::asio::steady_timer timer_;
  std::vector<machine::Gpu> gpus_;  // by slot; a GPU that was reported lost leaves an empty entry
  std::function<void(const wire::agent::GpuLost&)> lost_;
  net::Fd log_;  // the kernel's log; -1 if we may not read it
};

}  // namespace elasticrun::launcher::agent::workers
