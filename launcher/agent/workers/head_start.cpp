// See head_start.hpp.
#include "launcher/agent/workers/head_start.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "base/boot_clock.hpp"
#include "base/numbers.hpp"
#include "launcher/agent/workers/lead.hpp"
#include "launcher/agent/workers/listeners.hpp"

namespace elasticrun::launcher::agent::workers {
namespace {

constexpr Duration first_interval = std::chrono::milliseconds(10);
constexpr Duration patience = std::chrono::minutes(1);

std::string_view value(const std::vector<std::string>& env, std::string_view name) {
  for (const std::string_view entry : env)
    if (entry.starts_with(name) && entry.substr(name.size()).starts_with('='))
      return entry.substr(name.size() + 1);
  return {};
}

}  // namespace

void HeadStart::begins(wire::agent::StartWorker& order) {
  if (order.after_ms > 0 && took_)
    order.after_ms = static_cast<std::int32_t>(milliseconds(lead_after(*took_)));
  if (value(order.env, "RANK") != "0") return;
  port_ = static_cast<std::uint16_t>(whole_number(value(order.env, "MASTER_PORT")).value_or(0));
  began_ = boot_now();
  interval_ = first_interval;
  if (port_ != 0) look_later();
}

// The intervals grow with the time, and so does what they miss.
void HeadStart::look_later() {
  timer_.expires_after(interval_);
  timer_.async_wait([this](const boost::system::error_code& ec) {
    if (ec) return;
    const Duration took = boot_now() - began_;
    if (listens(port_)) {
      took_ = took;
    } else if (took < patience) {
      interval_ = std::max(first_interval, took / 50);
      look_later();
    }
  });
}

}  // namespace elasticrun::launcher::agent::workers
