// Notices that a worker's process is dying, long before the process has ended (net/lifeline.hpp).
//
// The lifeline is held by the process that has loaded the library. That need not be the worker's
// first one, whose end is the worker's: it may be below a shell, which goes on. So a broken
// lifeline is only the reason to ask the kernel whether the first process dies, and how.
#pragma once

#include <sys/types.h>

#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "launcher/agent/workers/process_stat.hpp"
#include "net/lifeline.hpp"

namespace elasticrun::launcher::agent::workers {

class DeathWatch {
 public:
  // To be made before the worker is started, which looks for its lifeline.
  DeathWatch(boost::asio::io_context& io, const std::string& lifeline);
  ~DeathWatch() { *alive_ = false; }
  DeathWatch(const DeathWatch&) = delete;
  DeathWatch& operator=(const DeathWatch&) = delete;

  // The worker's first process runs. `dies` is called at most once, and not after the destruction.
  void started(pid_t process, std::function<void(const ProcessEnd&)> dies);

 private:
  void look(int times);

  std::function<void(const ProcessEnd&)> dies_;  // empty: nobody waits for it (any more)
  boost::asio::steady_timer timer_;
  pid_t process_ = -1;
  std::optional<ProcessStat> first_seen_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for handlers under way
  net::LifelineWatch watch_;                                          // its thread ends first
};

}  // namespace elasticrun::launcher::agent::workers
