// See array.hpp.
#include "launcher/srun/array.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace elasticrun::launcher::srun {

std::string submit_command(const Array& array) {
  const std::string script = fmt::format(
      "exec {} --join {} --key {}{}", shell_quoted(array.agent), shell_quoted(array.controller),
      shell_quoted(array.key_file), array.slots > 0 ? fmt::format(" --slots {}", array.slots) : "");
  return fmt::format(
      "sbatch --parsable --no-requeue --signal=B:USR2@60 --nodes=1 {} --job-name={} --wrap={}",
      array.options, shell_quoted(array.name), shell_quoted(script));
}

std::string cancel_command(const Array& array) {
  return fmt::format("scancel --name={}", shell_quoted(array.name));
}

}  // namespace elasticrun::launcher::srun
