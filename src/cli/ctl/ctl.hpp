// elasticctl as a function: runs the command that the arguments name and returns the exit code.
#pragma once

namespace elasticrun::cli::ctl {

int ctl(int argc, char** argv);

}  // namespace elasticrun::cli::ctl
