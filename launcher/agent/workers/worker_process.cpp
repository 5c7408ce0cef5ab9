// See worker_process.hpp.
#include "launcher/agent/workers/worker_process.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <boost/asio/buffer.hpp>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/boot_clock.hpp"
#include "base/exit_code.hpp"
#include "launcher/agent/workers/processes.hpp"

namespace elasticrun::launcher::agent::workers {
namespace {

// How long the shim may take to report, after which nothing of the worker is left.
constexpr auto shim_patience = shim_cleaning_time + std::chrono::milliseconds(500);

constexpr Duration progress_interval = std::chrono::milliseconds(500);

}  // namespace

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::start(
    boost::asio::io_context& io, const wire::agent::StartWorker& order, const std::string& host,
    const std::string& program, const std::string& lifeline, Handlers handlers) {
  auto death = std::make_unique<DeathWatch>(io, lifeline);
  Result<Kept> kept = start_shim(order, host, program);
  if (!kept) return kept.error();
  return std::unique_ptr<WorkerProcess>(new WorkerProcess(io, order.worker, std::move(*kept), host,
                                                          std::move(death), std::move(handlers)));
}

WorkerProcess::WorkerProcess(boost::asio::io_context& io, WorkerId worker, Kept kept,
                             const std::string& host, std::unique_ptr<DeathWatch> death,
                             Handlers handlers)
    : shim_(kept.shim),
      host_(host),
      handlers_(std::move(handlers)),
      channel_(io, kept.channel.release()),
      patience_(io),
      out_(io, std::move(kept.out),
           {handlers_.output_full, [this](std::string text) { handlers_.on_output(1, text); },
            [this] { pipe_ended(); }}),
      err_(io, std::move(kept.err),
           {handlers_.output_full, [this](std::string text) { handlers_.on_output(2, text); },
            [this] { pipe_ended(); }}),
      meter_(worker, progress_interval),
      progress_(io, std::move(kept.progress),
                {[] { return false; },
                 [this](const std::string& lines) {
                   if (const auto report = meter_.hear(lines, boot_now()))
                     handlers_.on_progress(*report);
                 },
                 [this] { pipe_ended(); }}),
      death_(std::move(death)) {
  receive();
}

WorkerProcess::~WorkerProcess() { *alive_ = false; }

void WorkerProcess::resume_output() {
  out_.resume();
  err_.resume();
}

void WorkerProcess::order(unsigned char byte) {
  (void)!::send(channel_.native_handle(), &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// A shim that is stopped (SIGSTOP) gets the order but does not obey it. The worker must not take
// another step when this returns, because the controller builds the next world on that.
void WorkerProcess::kill() {
  order(kill_everything);
  if (over_) return;
  kill_below(shim_);
  unless_over_soon([this] { end_shim(); });
}

void WorkerProcess::call_off() {
  if (started_ || over_ || std::exchange(called_off_, true)) return;
  unless_over_soon([this] {
    if (!started_) end_shim();
  });
}

void WorkerProcess::unless_over_soon(std::function<void()> what) {
  patience_.expires_after(shim_patience);
  patience_.async_wait(
      [this, alive = alive_, what = std::move(what)](const boost::system::error_code& error) {
        if (!error && *alive && !over_) what();
      });
}

// What is started below it meanwhile becomes a child of the agent, which ends such strays.
void WorkerProcess::end_shim() {
  killed_ = true;
  kill_tree(shim_);
}

void WorkerProcess::receive() {
  channel_.async_read_some(
      boost::asio::buffer(&report_, sizeof report_),
      [this, alive = alive_](const boost::system::error_code& error, std::size_t bytes) {
        if (!*alive) return;
        if (error || bytes != sizeof report_) return channel_ended();
        take(report_);
        if (*alive) receive();
      });
}

void WorkerProcess::take(const ShimReport& report) {
  if (report.kind == ShimReport::started) {
    started_ = true;
    death_->started(report.value, [this](const ProcessEnd& end) {
      if (!over_) handlers_.on_dies(end);
    });
    return handlers_.on_started(report.value);
  }
  if (std::exchange(over_, true)) return;
  if (report.kind == ShimReport::failed)
    handlers_.on_failed(report.value, report.text);
  else
    handlers_.on_exited(report.value, report.signal);
}

void WorkerProcess::channel_ended() {
  boost::system::error_code ignored;
  channel_.close(ignored);
  if (!std::exchange(over_, true)) {
    if (started_ || killed_)
      handlers_.on_exited(0, SIGKILL);
    else
      handlers_.on_failed(exit_code::nothing_started,
                          fmt::format("{}: was killed before the program ran", host_));
  }
  out_.expect_end();
  err_.expect_end();
  progress_.expect_end();
  finish_if_done();
}

void WorkerProcess::pipe_ended() {
  --open_pipes_;
  finish_if_done();
}

void WorkerProcess::finish_if_done() {
  if (over_ && open_pipes_ == 0 && !channel_.is_open()) handlers_.on_done();
}

}  // namespace elasticrun::launcher::agent::workers
