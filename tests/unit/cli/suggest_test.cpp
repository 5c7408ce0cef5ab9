// Typing mistakes, and the nearest known names.
#include "cli/suggest.hpp"

#include <doctest/doctest.h>

using namespace elasticrun::cli;

TEST_CASE("the edit distance counts changes, and an exchange of neighbours as one") {
  struct Row {
    const char* a;
    const char* b;
    int distance;
  };
  const Row rows[] = {{"", "", 0},           {"", "abc", 3},
                      {"abc", "", 3},        {"hosts", "hosts", 0},
                      {"host", "hosts", 1},  {"hsots", "hosts", 1},
                      {"hostz", "hosts", 1}, {"kitten", "sitting", 3},
                      {"ab", "ba", 1},       {"max-bacth", "max-batch", 1}};
  for (const Row& row : rows) {
    CAPTURE(row.a);
    CHECK(edit_distance(row.a, row.b) == row.distance);
    CHECK(edit_distance(row.b, row.a) == row.distance);
  }
}

TEST_CASE("the nearest name is suggested, or none") {
  const std::string_view known[] = {"hosts", "host-list", "np", "max-batch", "max-np", "batch"};
  struct Row {
    const char* name;
    const char* best;
  };
  const Row rows[] = {
      {"hots", "hosts"}, {"max-bach", "max-batch"}, {"batc", "batch"}, {"max-batches", "max-batch"},
      {"n", "np"},       {"frobnicate", ""},        {"", ""},          {"zz", ""}};
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(closest(row.name, known) == row.best);
  }
  CHECK(closest(std::string(100, 'a'), known).empty());
}
