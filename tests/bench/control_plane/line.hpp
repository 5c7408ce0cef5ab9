// The line between a simulated host and the controller: real frames, with a latency on the virtual
// clock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tests/bench/control_plane/host.hpp"
#include "wire/frame.hpp"

namespace elasticrun::bench {

class Line : public std::enable_shared_from_this<Line> {
 public:
  using Deliver = std::function<void(std::string_view bytes)>;
  Line(simulate::Queue& queue, Deliver to_controller);

  StubHost::Uplink uplink();
  void connect(std::shared_ptr<StubHost> host) { host_ = std::move(host); }
  // Takes bytes from the controller.
  void receive(std::string_view bytes);
  StubHost& host() const { return *host_; }

 private:
  void send(WorkerId worker, std::string_view payload, bool passing);

  simulate::Queue& queue_;
  Deliver to_controller_;
  std::shared_ptr<StubHost> host_;
  wire::FrameReader reader_;
  std::uint64_t received_ = 0;  // number of counted frames
  std::string outgoing_;        // sent in this moment
};

}  // namespace elasticrun::bench
