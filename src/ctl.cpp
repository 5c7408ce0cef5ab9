// elasticctl: answers questions about jobs (plan) and about what they would do (simulate).
#include <csignal>

#include "cli/ctl/ctl.hpp"

int main(int argc, char** argv) {
  ::signal(SIGXFSZ, SIG_IGN);  // a file beyond the limit of sizes is an error like a full disk
  return elasticrun::cli::ctl::ctl(argc, argv);
}
