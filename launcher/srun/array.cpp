// See array.hpp.
#include "launcher/srun/array.hpp"

#include <fmt/format.h>

namespace elasticrun::launcher::srun {
namespace {

std::string quoted(std::string_view word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace

std::string submit_command(const Array& array) {
  // Workers of a node: tasks, where the user asks for them, else what the agent counts.
  const std::string script = fmt::format(
      "exec {} --join {} --key {} "
      "${{SLURM_NTASKS_PER_NODE:+--slots $SLURM_NTASKS_PER_NODE}}",
      quoted(array.agent), quoted(array.controller), quoted(array.key_file));
  return fmt::format(
      "env -u SLURM_NTASKS_PER_NODE sbatch --parsable --no-requeue --signal=B:USR2@60 "
      "--output=/dev/null --nodes=1 {} --job-name={} --wrap={}",
      array.options, quoted(array.name), quoted(script));
}

std::string cancel_command(const Array& array) {
  return fmt::format("scancel --name={}", quoted(array.name));
}

}  // namespace elasticrun::launcher::srun
