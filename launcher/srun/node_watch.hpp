// Which nodes of our job an administrator wants back, because they are drained or fail, and which
// of them are resumed (a driver).
//
// Slurm waits for the jobs of such a node, but does not notify them. So we ask, though seldom,
// because all jobs of a cluster ask the same controller. If no answer comes, each node keeps the
// state that was reported last.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "launcher/executors/hook_process.hpp"

namespace elasticrun::launcher::srun {

class NodeWatch {
 public:
  struct Handlers {
    std::function<void(const std::string& node, const std::string& why)> goes;  // once, until stays
    std::function<void(const std::string& node, const std::string& why)> stays;  // after goes
    std::function<void(const std::string& line)> line;  // why Slurm cannot be asked, once
  };
  // `job`: its id, digits only.
  NodeWatch(boost::asio::io_context& io, const std::string& job, Handlers handlers);

  void start();
  // After this no program or timer of this object runs, and no handler is called.
  void stop();

 private:
  void ask();
  void heard(const executors::HookAnswer& answer);

  boost::asio::steady_timer timer_;
  std::optional<executors::HookProcess> question_;
  Handlers handlers_;
  std::set<std::string> going_;
  std::string trouble_;  // as reported last
};

}  // namespace elasticrun::launcher::srun
