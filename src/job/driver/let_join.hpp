// Lets hosts join a job by themselves (a driver): the key for --join-key, and the line that says
// how.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "job/report/sink.hpp"
#include "launcher/executors/agent_start.hpp"
#include "launcher/executors/join_key.hpp"
#include "rendezvous/server/host_keys.hpp"

namespace elasticrun::job::driver {

// Writes the key to that file. `addresses`: where hosts can dial. The key is removed with the
// object.
Result<std::unique_ptr<launcher::executors::JoinKey>> let_join(
    const std::string& file, const rendezvous::server::HostKey& key,
    const launcher::executors::AgentStart& told, const std::vector<std::string>& addresses,
    report::Sink& sink);

}  // namespace elasticrun::job::driver
