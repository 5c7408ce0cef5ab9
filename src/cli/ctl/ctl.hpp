// elasticctl as a function: the command it is asked for, and the exit code.
#pragma once

namespace elasticrun::cli::ctl {

int ctl(int argc, char** argv);

}  // namespace elasticrun::cli::ctl
