// The command lines of an array of jobs.
#include "launcher/srun/array.hpp"

#include <doctest/doctest.h>

using namespace elasticrun::launcher::srun;

TEST_CASE("an array is submitted with the user's options, and cancelled by its name") {
  const Array array{.name = "elasticrun-1f",
                    .options = "--array=1-4 -t 60",
                    .agent = "/opt/agent",
                    .slots = 2,
                    .controller = "10.0.0.1:4000",
                    .key_file = "/home/u/a key"};
  const std::string command = submit_command(array);
  CHECK(command.find("sbatch --parsable --no-requeue --signal=B:USR2@60 --nodes=1 "
                     "--array=1-4 -t 60 --job-name='elasticrun-1f' "
                     "--wrap='exec ") != command.npos);
  // The script is one word of the command, and each path one word of the script.
  CHECK(command.find(R"('\''/opt/agent'\'' --join '\''10.0.0.1:4000'\'' )"
                     R"(--key '\''/home/u/a key'\'' --slots 2')") != command.npos);
  CHECK(cancel_command(array) == "scancel --name='elasticrun-1f'");
}
