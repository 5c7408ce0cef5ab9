// Lists of names and their folded form, with the numbers that are easy to get wrong.
#include "base/name_ranges.hpp"

#include <doctest/doctest.h>

using elasticrun::fold_names;

TEST_CASE("names are folded as a host file writes them") {
  struct Case {
    std::vector<std::string> names;
    const char* folded;
  };
  const Case cases[] = {
      {{}, ""},
      {{"a"}, "a"},
      {{"n1"}, "n1"},
      {{"n01"}, "n01"},
      {{"n1", "n2", "n3"}, "n[1-3]"},
      {{"n3", "n1"}, "n[1,3]"},
      {{"n01", "n02", "n10"}, "n[01-02,10]"},
      {{"n9", "n10", "n11"}, "n[9-11]"},
      {{"n1", "m1", "n2"}, "n[1-2], m1"},
      {{"10.0.0.1", "10.0.0.2"}, "10.0.0.[1-2]"},
      {{"n1.rack", "n2.rack"}, "n1.rack, n2.rack"},
      {{"a", "b", "c", "d", "e", "f", "g"}, "a, b, c, d, e, f, ..."},
      {{"n12345678901"}, "n12345678901"},
  };
  for (const Case& one : cases) CHECK(fold_names(one.names) == one.folded);
}
