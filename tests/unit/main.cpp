// The main of every test executable: doctest's, in a file of its own because it is slow to compile.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
