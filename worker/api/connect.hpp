// The way to the world that the environment of this process says: the agent of this host, or none.
#pragma once

#include <memory>

#include "base/ids.hpp"
#include "worker/control/control_channel.hpp"
#include "worker/control/member_lock.hpp"
#include "worker/control/step_meter.hpp"
#include "worker/gpu/gpu.hpp"

namespace elasticrun::worker::api {

// The worker that elasticrun has started this process as; without elasticrun the only one.
WorkerId own_worker();
// In how many steps the whole state is compared with that of the others; 0: never.
std::int64_t own_compare_steps();
// For messages to people.
std::string own_host();

// Attached to the member; `gpu` as in backend.hpp. Everything outlives the channel. Throws Stop.
std::unique_ptr<control::ControlChannel> open_channel(control::MemberLock& member_lock,
                                                      control::StepMeter& meter,
                                                      std::shared_ptr<gpu::Gpu>& gpu,
                                                      const char* version);

}  // namespace elasticrun::worker::api
