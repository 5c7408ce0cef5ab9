// Keeps MASTER_PORT open from the start of rank 0 on (a driver).
//
// What rank 0 opens there, the others dial. All of them load the same things until then, in about
// the same time, and whoever comes too early is refused: PyTorch 1.13 then waits for a second. To
// start the others later costs each restart that time, and they still come too early at times. So
// the agent opens MASTER_PORT at once, rank 0 is told another port, and who comes waits until rank
// 0 has opened that, and is handed on to it. The ports behind MASTER_PORT are kept as well, for
// programs that count on from it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "wire/agent/messages.hpp"

namespace elasticrun::launcher::agent::workers {

class MasterPort {
 public:
  // More than `connections_max` at a time, on one port, are closed at once.
  MasterPort(boost::asio::io_context& io, std::size_t connections_max)
      : io_(io), connections_max_(connections_max) {}
  ~MasterPort() { close(); }
  MasterPort(const MasterPort&) = delete;
  MasterPort& operator=(const MasterPort&) = delete;

  // A worker begins. If it is rank 0, opens its MASTER_PORT and gives it another one; where that
  // cannot be done, rank 0 opens it itself.
  void begins(wire::agent::StartWorker& order);
  // A worker has ended: after rank 0 nobody is handed on.
  void ended(WorkerId worker) {
    if (worker == rank0_) close();
  }

 private:
  class Door;

  void close();

  boost::asio::io_context& io_;
  const std::size_t connections_max_;
  std::vector<std::shared_ptr<Door>> doors_;
  WorkerId rank0_;
};

}  // namespace elasticrun::launcher::agent::workers
