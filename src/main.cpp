// elasticrun: the launcher.
#include <unistd.h>

#include "cli/run/run.hpp"

int main(int argc, char** argv) { return elasticrun::cli::run::run(argc, argv, environ); }
