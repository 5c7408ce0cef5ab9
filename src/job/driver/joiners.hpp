// Hosts that join a job by themselves (a driver): the key for --join-key, the line that says how,
// and the array of jobs that --slurm-grow asks Slurm for.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "job/report/sink.hpp"
#include "job/spec.hpp"
#include "launcher/executors/agent_start.hpp"
#include "launcher/executors/join_key.hpp"
#include "launcher/srun/array.hpp"
#include "rendezvous/server/host_keys.hpp"

namespace elasticrun::job::driver {

class Joiners {
 public:
  Joiners(const JobSpec& spec, report::Sink& sink) : spec_(spec), sink_(sink) {}
  ~Joiners() { close(); }
  Joiners(const Joiners&) = delete;
  Joiners& operator=(const Joiners&) = delete;

  // Lets hosts join, where the user wants that: writes the key, and asks Slurm, which blocks for
  // some seconds at most. `addresses`: where hosts can dial.
  Result<void> invite(const rendezvous::server::HostKey& key,
                      const launcher::executors::AgentStart& told,
                      const std::vector<std::string>& addresses);
  // No further host may come, and none that still waits in Slurm's queue. Blocks for a few seconds
  // at most.
  void close();

 private:
  Result<void> ask_slurm(const launcher::executors::AgentStart& told,
                         const std::vector<std::string>& addresses);

  const JobSpec& spec_;
  report::Sink& sink_;
  std::unique_ptr<launcher::executors::JoinKey> key_;
  std::optional<launcher::srun::Array> array_;
};

}  // namespace elasticrun::job::driver
