// Connects this process as its environment variables say: to the agent of this host, or, without
// elasticrun, to none.
#pragma once

#include <memory>

#include "base/ids.hpp"
#include "worker/control/control_channel.hpp"
#include "worker/control/member_lock.hpp"
#include "worker/control/step_meter.hpp"
#include "worker/control/world_session.hpp"
#include "worker/gpu/gpu.hpp"

namespace elasticrun::worker::api {

// The id of the worker as which elasticrun has started this process; solo_worker without
// elasticrun.
WorkerId own_worker();
// What elasticrun has told this process about its time in the job. Reads and writes in the folder
// of
// --save, where there is one.
control::SessionOptions own_session();
// From now on no other process of this worker can open a job.
void note_training();
// The name of this host, for message texts; empty without elasticrun.
std::string own_host();

// Opens the channel and attaches it to the member lock; for `gpu` see backend.hpp. All arguments
// outlive the channel. Throws Stop.
std::unique_ptr<control::ControlChannel> open_channel(control::MemberLock& member_lock,
                                                      control::StepMeter& meter,
                                                      std::shared_ptr<gpu::Gpu>& gpu,
                                                      const char* version);

}  // namespace elasticrun::worker::api
