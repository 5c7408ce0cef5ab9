// See resumable.hpp.
#include "net/resumable.hpp"

#include <utility>

#include "base/check.hpp"
#include "wire/limits.hpp"

namespace elasticrun::net {

Resumable::Resumable(Handlers handlers)
    : handlers_(std::move(handlers)), unacknowledged_(wire::control_queue_max) {
  ER_CHECK(handlers_.on_frame && handlers_.on_lost);
}

Resumable::~Resumable() = default;

bool Resumable::attach(std::unique_ptr<Session> session, std::uint64_t peer_has_received) {
  hang_up();
  if (!unacknowledged_.is_whole() || !unacknowledged_.acknowledge(peer_has_received)) return false;
  session_ = std::move(session);
  for (const auto& [worker, payload] : unacknowledged_.entries()) session_->send(worker, payload);
  for (const std::string& frame : std::exchange(bulk_, {})) session_->send_bulk_frame(frame);
  session_->start({.on_frame = handlers_.on_frame,
                   .on_close = [this](const std::string& reason) { lost(reason); },
                   .on_bulk_drained = handlers_.on_bulk_drained});
  return true;
}

void Resumable::hang_up() {
  if (!session_) return;
  received_before_ = received();
  if (handlers_.keep_bulk) bulk_ = session_->unwritten_bulk();
  session_.reset();
}

void Resumable::lost(const std::string& reason) {
  hang_up();
  const auto on_lost = handlers_.on_lost;  // a copy, because the call may destroy this object
  on_lost(reason);
}

std::uint64_t Resumable::received() const {
  return received_before_ + (session_ ? session_->received() : 0);
}

void Resumable::acknowledged(std::uint64_t count) {
  // A number that is too old or too high can only be the peer's mistake. It is ignored, which does
  // no harm.
  unacknowledged_.acknowledge(count);
}

void Resumable::send(WorkerId worker, std::string_view payload) {
  unacknowledged_.push(worker, std::string(payload));
  if (session_) session_->send(worker, payload);
}

void Resumable::send_passing(WorkerId worker, std::string_view payload) {
  if (session_) session_->send_passing(worker, payload);
}

void Resumable::send_bulk(WorkerId worker, std::string_view payload) {
  if (session_) session_->send_bulk(worker, payload);
}

void Resumable::close(Duration flush_time) {
  if (session_) session_->close(flush_time);
}

}  // namespace elasticrun::net
