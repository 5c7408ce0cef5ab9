// See let_join.hpp.
#include "job/driver/let_join.hpp"

namespace elasticrun::job::driver {

Result<std::unique_ptr<launcher::executors::JoinKey>> let_join(
    const std::string& file, const rendezvous::server::HostKey& key,
    const launcher::executors::AgentStart& told, const std::vector<std::string>& addresses,
    report::Sink& sink) {
  auto written = launcher::executors::JoinKey::write(
      file, {told.job, key.identity, key.key_hex, told.version});
  if (!written) return written;
  sink.log(report::LogLevel::info,
           "hosts may join: " + launcher::executors::join_command(file, addresses, told.port));
  return written;
}

}  // namespace elasticrun::job::driver
