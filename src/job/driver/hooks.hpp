// How the programs of the user that answer questions are run.
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "job/spec.hpp"
#include "launcher/executors/hook_process.hpp"

namespace elasticrun::job::driver {

// --host-discovery, and the error message when a run failed; `place` (a flag, say) begins the
// message.
launcher::executors::Hook discovery_hook(const JobSpec& spec);
Error discovery_trouble(const JobSpec& spec, std::string_view place, const Error& trouble);

// --policy exec:
launcher::executors::Hook advice_hook(const JobSpec& spec);

}  // namespace elasticrun::job::driver
