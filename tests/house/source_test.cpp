// Tests how the tree is read: comments and strings are blanked, patterns match.
#include "tests/house/source.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace elasticrun::house;

TEST_CASE("comments and literals are blanked, code keeps its columns") {
  const struct {
    std::string_view text, code;
  } rows[] = {
      {"int a;  // sleep(1)", "int a;"},
      {"f(/* sleep */ 1);", "f(            1);"},
      {"f(\"sleep(1)\", 2);", "f(          , 2);"},
      {"f(\"a\\\"b\", 2);", "f(      , 2);"},
      {"f('\\'', 2);", "f(    , 2);"},
      {"n = 60'000 + 1'000;", "n = 60'000 + 1'000;"},
      {"f(R\"x(a \" b)x\", 2);", "f(            , 2);"},
      {"#include \"base/ids.hpp\"", "#include \"base/ids.hpp\""},
  };
  for (const auto& row : rows) {
    CAPTURE(row.text);
    std::string line = code_lines(row.text).at(0);
    line.erase(line.find_last_not_of(' ') + 1);
    CHECK(line == row.code);
  }
  CHECK(code_lines("a /* b\nc */ d") == std::vector<std::string>{"a     ", "     d"});
}

TEST_CASE("patterns match paths") {
  const struct {
    std::string_view path, pattern;
    bool matches;
  } rows[] = {
      {"src/net/tls.cpp", "src/net/", true},
      {"src/network/tls.cpp", "src/net/", false},
      {"worker/gloo_group.hpp", "worker/gloo_group.*", true},
      {"worker/gloo_groups.hpp", "worker/gloo_group.*", false},
      {"launcher/local_executor.cpp", "launcher/*executor.*", true},
      {"launcher/agent/executor.cpp", "launcher/*executor.*", false},
      {"launcher/agent/spawn.cpp", "launcher/agent/", true},
  };
  for (const auto& row : rows) {
    CAPTURE(row.path);
    CHECK(matches(row.path, {row.pattern}) == row.matches);
  }
}

TEST_CASE("drivers are known, and the cores are not among them") {
  CHECK(matches("launcher/agent/spawn.cpp", drivers()));
  CHECK_FALSE(matches("launcher/agent/agent_core.cpp", drivers()));
  CHECK_FALSE(matches("rendezvous/membership.cpp", drivers()));
}

TEST_CASE("the tree is read without the build folders") {
  const std::vector<Source> tree = read_tree(ELASTICRUN_ROOT);
  const auto has = [&](std::string_view path) {
    return std::any_of(tree.begin(), tree.end(), [&](const Source& s) { return s.path == path; });
  };
  CHECK(has("src/base/ids.hpp"));
  CHECK(has("tests/house/source_test.cpp"));
  CHECK(std::none_of(tree.begin(), tree.end(), [](const Source& s) {
    return s.path.starts_with("build") || s.path.starts_with(".");
  }));
}
