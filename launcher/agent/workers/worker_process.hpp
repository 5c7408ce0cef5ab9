// One worker as the agent sees it: its shim's channel, its two output pipes, and what it says about
// its progress.
//
// The exit is reported as soon as it is known, and the output follows until the pipes have ended:
// news of a death must not wait behind megabytes of text.
#pragma once

#include <sys/types.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "launcher/agent/workers/death_watch.hpp"
#include "launcher/agent/workers/output_pipe.hpp"
#include "launcher/agent/workers/progress_meter.hpp"
#include "launcher/agent/workers/shim.hpp"
#include "wire/agent/messages.hpp"

namespace elasticrun::launcher::agent::workers {

class WorkerProcess {
 public:
  // No handler is called inside start, and none after the destruction.
  struct Handlers {
    std::function<void(std::int32_t pid)> on_started;
    std::function<void(std::int32_t code, std::string reason)> on_failed;
    // Its process is dying and will not do anything more; on_exited comes when all is gone.
    std::function<void(const ProcessEnd&)> on_dies;
    std::function<void(std::int32_t code, std::int32_t signal)> on_exited;
    std::function<bool()> output_full;
    std::function<void(std::int32_t stream, std::string lines)> on_output;
    std::function<void(const wire::agent::Progress&)> on_progress;
    std::function<void()> on_done;  // failed or exited, and all its output handed over
  };

  static Result<std::unique_ptr<WorkerProcess>> start(
      boost::asio::io_context& io, const wire::agent::StartWorker& order, const std::string& host,
      const std::string& program, const std::string& lifeline, Handlers handlers);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  pid_t shim() const { return shim_; }
  void signal(std::int32_t signal) { order(static_cast<unsigned char>(signal)); }
  // Kills the worker with everything it has started, at once, even if its shim is stopped or
  // blocked. The exit is reported by the shim, or, if the shim takes too long, without it.
  void kill();
  // To be called when a worker is to end that has not started yet. If it starts soon, the signals
  // that wait for its start end it. If it does not (a file server does not answer, say), its shim
  // is killed with everything below it.
  void call_off();
  void resume_output();

 private:
  WorkerProcess(boost::asio::io_context& io, WorkerId worker, Kept kept, const std::string& host,
                std::unique_ptr<DeathWatch> death, Handlers handlers);
  void order(unsigned char byte);
  void unless_over_soon(std::function<void()> what);
  void end_shim();
  void receive();
  void take(const ShimReport& report);
  void channel_ended();
  void pipe_ended();
  void finish_if_done();

  const pid_t shim_;
  const std::string host_;
  Handlers handlers_;
  boost::asio::posix::stream_descriptor channel_;
  ShimReport report_;
  bool started_ = false;
  bool over_ = false;    // failed or exited, and reported
  bool killed_ = false;  // we killed it together with its shim
  bool called_off_ = false;
  boost::asio::steady_timer patience_;
  int open_pipes_ = 3;
  OutputPipe out_;
  OutputPipe err_;
  ProgressMeter meter_;
  OutputPipe progress_;
  const std::unique_ptr<DeathWatch> death_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for handlers under way
};

}  // namespace elasticrun::launcher::agent::workers
