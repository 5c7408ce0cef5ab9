// elasticctl: asks about jobs and about what they would do.
#include "cli/ctl/ctl.hpp"

int main(int argc, char** argv) { return elasticrun::cli::ctl::ctl(argc, argv); }
