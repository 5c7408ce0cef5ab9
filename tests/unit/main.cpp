// The main function of every test executable, from doctest. It has its own file because it compiles
// slowly.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
