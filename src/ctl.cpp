// elasticctl: asks about jobs and about what they would do.
#include "cli/ctl.hpp"

int main(int argc, char** argv) { return elasticrun::cli::ctl(argc, argv); }
