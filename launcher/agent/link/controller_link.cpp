// See controller_link.hpp.
#include "launcher/agent/link/controller_link.hpp"

#include <boost/asio/post.hpp>
#include <cerrno>
#include <utility>

#include "base/boot_clock.hpp"
#include "wire/codec.hpp"

namespace elasticrun::launcher::agent::link {
namespace {

// A controller that is stopped accepts connections until its queue of them is full. So an agent
// keeps the one it has: AgentCore decides how long.
constexpr Duration greeting_time = std::chrono::hours(24);

}  // namespace

ControllerLink::ControllerLink(boost::asio::io_context& io, Handlers handlers)
    : io_(io),
      handlers_(std::move(handlers)),
      link_({.on_frame = handlers_.frame,
             .on_lost = [this](const std::string& reason) { lost(reason); },
             .on_bulk_drained = handlers_.bulk_drained}),
      timer_(io) {}

void ControllerLink::begin(const executors::AgentStart& start, std::vector<std::string> for_others,
                           std::vector<machine::Gpu> gpus) {
  start_ = start;
  for_others_ = std::move(for_others);
  gpus_ = std::move(gpus);
  reach_ = std::make_unique<ControllerDialer>(io_, start_, for_others_, gpus_);
  reach_->begin([this](Result<Dialled> result) { reached(std::move(result)); });
}

void ControllerLink::learned(const executors::AgentStart& start) {
  start_.host = start.host;
  start_.identity = start.identity;
  start_.key_hex = start.key_hex;
  start_.term = start.term;
  start_.lease_ms = start.lease_ms;
}

void ControllerLink::reached(Result<Dialled> result) {
  if (!result) return handlers_.reached(std::move(result));
  start_.stream.clear();  // standard output is for the first connection only
  if (!result->controller.empty()) start_.addresses = {result->controller};
  auto session = std::move(result->greeted.session);
  handlers_.reached(std::move(result));
  link_.attach(std::move(session), 0);
}

void ControllerLink::lost(const std::string&) {
  if (closed_) return closed_();
  if (over_) return;
  redial_.lost(boot_now());
  handlers_.away();
  arm();
}

void ControllerLink::arm() {
  const Time at = redial_.dial_at();
  if (over_ || at == never) return;
  timer_.expires_after(at - boot_now());
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) dial();
  });
}

void ControllerLink::dial() {
  if (over_) return;
  redial_.dialled();
  reach_ = std::make_unique<ControllerDialer>(io_, start_, for_others_, gpus_,
                                              static_cast<std::int64_t>(link_.received()),
                                              net::DialTime{redial_.attempt_time(), greeting_time});
  reach_->begin([this](Result<Dialled> result) { resumed(std::move(result)); });
  watch();
}

// While the connection lives, its other machine does: it confirms what was sent, and probes.
void ControllerLink::watch() {
  timer_.expires_after(std::chrono::milliseconds(start_.lease_ms) / 4);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error || over_) return;
    if (reach_->awaits_greeting()) handlers_.stands_still();
    watch();
  });
}

void ControllerLink::resumed(Result<Dialled> result) {
  timer_.cancel();
  if (over_) return;
  if (!result) {
    const Error& error = result.error();
    if (error.number == EACCES) return handlers_.given_up(error.text);
    redial_.failed(error.number == ECONNREFUSED, boot_now());
    return redial_.controller_gone() ? handlers_.controller_gone(error.text) : arm();
  }
  const auto received = static_cast<std::uint64_t>(result->greeted.welcome.received);
  if (!link_.attach(std::move(result->greeted.session), received))
    return handlers_.given_up("the connection was lost, and too much is to be sent again");
  redial_.connected();
  handlers_.back();
}

void ControllerLink::send(WorkerId worker, std::string_view payload) {
  if (!over_) link_.send(worker, payload);
}

void ControllerLink::send_heartbeat(wire::agent::Heartbeat heartbeat) {
  heartbeat.received = link_.received();
  if (!over_) link_.send_passing(WorkerId{}, wire::encode(wire::agent::FromAgent(heartbeat)));
}

void ControllerLink::send_bulk(std::string_view payload) {
  if (!over_) link_.send_bulk(WorkerId{}, payload);
}

void ControllerLink::close(Duration flush_time, std::function<void()> closed) {
  if (!link_.attached()) return closed();
  closed_ = std::move(closed);
  link_.close(flush_time);
}

void ControllerLink::end() {
  over_ = true;
  timer_.cancel();
  if (reach_) reach_->stop();
  link_.hang_up();
}

}  // namespace elasticrun::launcher::agent::link
