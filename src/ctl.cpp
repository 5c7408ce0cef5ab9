// elasticctl: answers questions about jobs (plan) and about what they would do (simulate).
#include "cli/ctl/ctl.hpp"

int main(int argc, char** argv) { return elasticrun::cli::ctl::ctl(argc, argv); }
