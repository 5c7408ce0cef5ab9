// See connect.hpp.
#include "worker/api/connect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>
#include <utility>

#include "net/lifeline.hpp"
#include "save/folder.hpp"
#include "worker/api/backend.hpp"
#include "worker/api/stray_signals.hpp"
#include "worker/control/agent_channel.hpp"
#include "worker/control/standalone.hpp"
#include "worker/control/stop.hpp"

namespace elasticrun::worker::api {
namespace {

std::string text_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value ? value : "";
}

// The value of the variable; 0 when it is not set, -1 when it is not a number in 1 to 2^31 - 1.
std::int64_t number_of(const char* variable) {
  const std::string text = text_of(variable);
  if (text.empty()) return 0;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && number > 0 && number < std::int64_t{1} << 31 ? number : -1;
}

std::int64_t required_number(const char* variable, std::int64_t otherwise) {
  const std::int64_t number = number_of(variable);
  if (number < 0 || (number == 0 && otherwise == 0))
    throw control::Stop(
        ELASTICRUN_FAILED,
        fmt::format("ELASTICRUN_SOCKET is set, but {} is '{}'; start the program by elasticrun",
                    variable, text_of(variable)));
  return number == 0 ? otherwise : number;
}

std::unique_ptr<collective::DataPlane> plane_of(const std::string& backend,
                                                std::shared_ptr<gpu::Gpu>& gpu) {
  auto plane = make_plane(
      {.backend = backend,
       .host = own_host(),
       .address = text_of("ELASTICRUN_ADDRESS"),
       .local_rank = static_cast<int>(std::max<std::int64_t>(number_of("LOCAL_RANK"), 0)),
       .has_gpu = !text_of("ELASTICRUN_GPU").empty()},
      gpu);
  if (!plane) throw control::Stop(ELASTICRUN_FAILED, plane.error().text);
  return std::move(*plane);
}

}  // namespace

WorkerId own_worker() {
  if (text_of("ELASTICRUN_SOCKET").empty()) return control::solo_worker;
  const std::int64_t self = std::max<std::int64_t>(number_of("ELASTICRUN_WORKER"), 0);
  return WorkerId(static_cast<std::uint32_t>(self));
}

control::SessionOptions own_session() {
  control::SessionOptions options;
  options.compare_steps = std::max<std::int64_t>(number_of("ELASTICRUN_VERIFY_STATE"), 0);
  if (const std::string folder = text_of("ELASTICRUN_SAVE"); !folder.empty())
    if (const auto usable = save::probe(folder, text_of("ELASTICRUN_JOB_ID"), own_worker().value);
        !usable)
      options.save_trouble = usable.error().text;
  return options;
}

void note_training() {
  if (const std::string socket = text_of("ELASTICRUN_SOCKET"); !socket.empty())
    net::note_training(net::lifeline_path(socket, own_worker()));
}

std::string own_host() { return text_of("ELASTICRUN_HOST"); }

std::unique_ptr<control::ControlChannel> open_channel(control::MemberLock& member_lock,
                                                      control::StepMeter& meter,
                                                      std::shared_ptr<gpu::Gpu>& gpu,
                                                      const char* version) {
  const std::string socket = text_of("ELASTICRUN_SOCKET");
  if (socket.empty()) {
    auto standalone = std::make_unique<control::Standalone>(plane_of("gloo", gpu));
    member_lock.attach(*standalone);
    return standalone;
  }
  if (!text_of("ELASTICRUN_SAVE").empty()) ignore_stray_signals();
  const control::ConnectionOptions options{
      .path = socket,
      .job = text_of("ELASTICRUN_JOB_ID"),
      .worker = WorkerId(static_cast<std::uint32_t>(required_number("ELASTICRUN_WORKER", 0))),
      .version = version,
      .sample_interval = std::chrono::milliseconds(required_number("ELASTICRUN_SAMPLE_MS", 500))};
  if (net::has_trained(net::lifeline_path(options.path, options.worker)))
    throw control::Stop(ELASTICRUN_MISUSE,
                        "one job per worker: this worker has trained before; start each training "
                        "by an elasticrun of its own, which also repeats one that fails");
  auto channel = control::AgentChannel::open(options, plane_of(text_of("ELASTICRUN_BACKEND"), gpu),
                                             member_lock, meter);
  if (!channel) throw control::Stop(ELASTICRUN_FAILED, channel.error().text);
  return std::move(*channel);
}

}  // namespace elasticrun::worker::api
