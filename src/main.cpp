// elasticrun: the launcher.
#include <unistd.h>

#include "cli/run.hpp"

int main(int argc, char** argv) { return elasticrun::cli::run(argc, argv, environ); }
