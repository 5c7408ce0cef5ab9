// See connection.hpp. The opening thread runs the io_context until the greeting is over, so an
// agent that does not answer is an ordinary error; the control thread runs it from then on.
#include "worker/control/connection.hpp"

#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "base/check.hpp"
#include "base/quiet_thread.hpp"
#include "net/dial.hpp"
#include "net/lifeline.hpp"
#include "net/session.hpp"
#include "wire/codec.hpp"
#include "wire/limits.hpp"

namespace elasticrun::worker::control {

namespace asio = boost::asio;

struct Connection::Impl {
  Impl(const ConnectionOptions& o, ConnectionHandlers h) : options(o), handlers(std::move(h)) {}

  Result<void> dial();
  void start();
  void stop();
  void write(const wire::FromWorker& message);
  void read(std::string_view payload) const;
  void lost(const std::string& reason);
  void arm();

  const ConnectionOptions options;
  const ConnectionHandlers handlers;
  asio::io_context io{1};
  asio::steady_timer timer{io};
  std::unique_ptr<net::Session> session;
  bool closing = false;
  std::thread thread;
};

Result<void> Connection::Impl::dial() {
  const wire::Hello hello{.protocol = wire::protocol,
                          .version = options.version,
                          .role = "worker",
                          .job = options.job,
                          .worker = options.worker,
                          .pid = ::getpid()};
  std::optional<Result<net::Greeted>> outcome;
  {
    const net::Operation dialling =
        net::dial_unix(io, options.path, hello, net::greeting_time_default,
                       [&](Result<net::Greeted> greeted) { outcome = std::move(greeted); });
    while (!outcome && io.run_one() > 0) {
    }
  }
  ER_CHECK(outcome, "dialling ended without an outcome");
  if (!*outcome) return outcome->error();
  session = std::move((**outcome).session);
  session->limit_sends(wire::worker_message_bytes_max);
  return {};
}

void Connection::Impl::start() {
  session->start({.on_frame = [this](WorkerId, std::string_view payload) { read(payload); },
                  .on_close = [this](const std::string& reason) { lost(reason); }});
  write(wire::Join{wire::protocol, options.version});
  arm();
  thread = start_quiet_thread("er-control", [this] {
    const net::HeldLifeline held(net::lifeline_path(options.path, options.worker));
    io.restart();
    io.run();
  });
}

// A newer controller may send messages that this library does not know. They are ignored; if the
// controller needs an answer, its own deadline expires.
void Connection::Impl::read(std::string_view payload) const {
  const Result<wire::ToWorker> message = wire::decode<wire::ToWorker>(payload);
  if (message) handlers.on_message(*message);
}

void Connection::Impl::write(const wire::FromWorker& message) {
  if (session) session->send(options.worker, wire::encode(message));
}

void Connection::Impl::lost(const std::string& reason) {
  timer.cancel();
  session.reset();
  if (!closing) handlers.on_lost(reason);
}

// All workers of a host send at the same moment by the host's clock, so their samples travel
// together.
void Connection::Impl::arm() {
  const auto interval =
      std::chrono::duration_cast<asio::steady_timer::duration>(options.sample_interval);
  const auto now = std::chrono::steady_clock::now();
  timer.expires_at(now + interval - now.time_since_epoch() % interval);
  timer.async_wait([this](const boost::system::error_code& error) {
    if (error || !session || closing) return;
    if (const auto sample = handlers.sample()) write(*sample);
    arm();
  });
}

void Connection::Impl::stop() {
  asio::post(io, [this] {
    closing = true;
    timer.cancel();
    if (session) session->close();
  });
  thread.join();
}

Connection::Connection(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Connection::~Connection() { impl_->stop(); }

void Connection::send(wire::FromWorker message) {
  asio::post(impl_->io,
             [impl = impl_.get(), message = std::move(message)] { impl->write(message); });
}

void Connection::flush() {
  const auto written = std::make_shared<std::promise<void>>();
  const std::future<void> done = written->get_future();
  asio::post(impl_->io, [impl = impl_.get(), written] {
    if (impl->session) impl->session->when_written([written] { written->set_value(); });
  });
  done.wait_for(net::flush_time_default);
}

Result<std::unique_ptr<Connection>> Connection::open(const ConnectionOptions& options,
                                                     ConnectionHandlers handlers) {
  auto impl = std::make_unique<Impl>(options, std::move(handlers));
  if (Result<void> dialled = impl->dial(); !dialled) return dialled.error();
  impl->start();
  return std::unique_ptr<Connection>(new Connection(std::move(impl)));
}

}  // namespace elasticrun::worker::control
