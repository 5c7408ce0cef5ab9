#include "tests/bench/control_plane/line.hpp"

#include <utility>

#include "base/check.hpp"
#include "wire/codec.hpp"
#include "wire/limits.hpp"

namespace elasticrun::bench {
namespace {

constexpr Duration latency = std::chrono::microseconds(200);

}  // namespace

Line::Line(simulate::Queue& queue, Deliver to_controller)
    : queue_(queue), to_controller_(std::move(to_controller)), reader_(wire::frame_bytes_max) {}

StubHost::Uplink Line::uplink() {
  const auto weak = weak_from_this();
  return {.send =
              [weak](WorkerId worker, std::string_view payload) {
                if (const auto line = weak.lock()) line->send(worker, payload, false);
              },
          .send_heartbeat =
              [weak](wire::agent::Heartbeat heartbeat) {
                const auto line = weak.lock();
                if (!line) return;
                heartbeat.received = line->received_;
                line->send(WorkerId{}, wire::encode(wire::agent::FromAgent(heartbeat)), true);
              }};
}

// What is sent at one moment arrives together, as over TCP.
void Line::send(WorkerId worker, std::string_view payload, bool passing) {
  const bool first = outgoing_.empty();
  wire::append_frame(outgoing_, worker, payload, passing);
  if (!first) return;
  queue_.after(latency, [self = shared_from_this()] {
    const std::string bytes = std::exchange(self->outgoing_, {});
    if (self->host_->alive()) self->to_controller_(bytes);
  });
}

void Line::receive(std::string_view bytes) {
  reader_.feed(bytes);
  while (host_->alive()) {
    const auto next = reader_.next();
    ER_CHECK(next.has_value());
    if (!*next) return;
    received_ += !(*next)->passing;
    host_->receive((*next)->worker, (*next)->payload);
  }
}

}  // namespace elasticrun::bench
